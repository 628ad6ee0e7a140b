//! The life of secrets: changes, pruning and removal (`docs/hook-model.md` 5.9, S-6, S-8, S-10).

use std::collections::BTreeSet;

use periapt_host_api::{
    ApplicationName, ErrorCode, Refusal, Timestamp, UnitName,
    secret::{
        Confidential, Removal, Sealed, SecretData, SecretId, SecretOwner, SecretReader, SecretRevision,
    },
};

use crate::{
    entity::{ModelKey, Secret, SecretContent, Work},
    root::ModelState,
    transaction::Transaction,
};

/// The most secrets of one owner. All of them are part of the owner's views.
const MAX_SECRETS: usize = 1_000;

/// The most existing revisions of one secret. Each is an entry of the owner's views.
const MAX_REVISIONS: usize = 1_000;

/// The most grants of one secret. They are written with each change of it.
pub(crate) const MAX_GRANTS: usize = 1_000;

/// The most bytes of all secrets of one model, with the charge for each part. The controller holds them in memory.
const MAX_BYTES: usize = 64 << 20;

/// The number of entities left to the rest of a commit.
const RESERVE: usize = 10;

fn quota(text: String, id: &SecretId) -> Refusal {
    Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("secret {id}"))
}

/// Returns the sealed content. Open content never gets here: `seal_input` seals it before.
pub(crate) fn sealed(content: &Confidential<SecretData>) -> Result<&Sealed, Refusal> {
    match content {
        Confidential::Sealed(sealed) => Ok(sealed),
        Confidential::Open(_) => Err(Refusal::new(ErrorCode::Internal, "a secret's content was not sealed")),
    }
}

/// Creates a secret with its first revision.
pub(crate) fn add(
    tx: &mut Transaction<'_>,
    secret: Secret,
    content: &Confidential<SecretData>,
    expire: Option<Timestamp>,
) -> Result<(), Refusal> {
    // The new secret would take over the leftovers of a removed one, so an id stays taken until they are gone.
    if tx.state.secret(&secret.id).is_some() || tx.state.has_secret_parts(&secret.id) {
        let text = format!("secret {:?} already exists", secret.id.to_string());
        return Err(Refusal::already_exists(text).about(format!("secret {}", secret.id)));
    }
    if tx.state.secret_count(&secret.owner) >= MAX_SECRETS {
        return Err(quota(format!("an owner has at most {MAX_SECRETS} secrets"), &secret.id));
    }
    let sealed = sealed(content)?.clone();
    let (id, revision, now) = (secret.id, secret.latest, tx.now());
    put(tx, secret)?;
    let tell_at = expire;
    let content = SecretContent {
        id,
        revision,
        sealed,
        expire,
        tell_at,
        expire_due: false,
        created_at: now,
        updated_at: now,
    };
    put_content(tx, content)
}

/// Writes a secret. Refuses growth beyond the model's limit for secrets.
pub(crate) fn put(tx: &mut Transaction<'_>, secret: Secret) -> Result<(), Refusal> {
    let before = tx.state.secret(&secret.id).map_or(0, |secret| secret.weight());
    check_growth(tx, &secret.id, secret.weight().saturating_sub(before))?;
    tx.put(secret);
    Ok(())
}

fn put_content(tx: &mut Transaction<'_>, content: SecretContent) -> Result<(), Refusal> {
    check_growth(tx, &content.id, content.weight())?;
    tx.put(content);
    Ok(())
}

fn check_growth(tx: &Transaction<'_>, id: &SecretId, bytes: usize) -> Result<(), Refusal> {
    if bytes > 0 && tx.state.secret_bytes().saturating_add(bytes) > MAX_BYTES {
        let text = format!(
            "the secrets of a model, with each of their revisions and readers, take at most {MAX_BYTES} bytes"
        );
        return Err(quota(text, id));
    }
    Ok(())
}

/// Adds a revision, and returns true, unless the content equals that of the latest revision (S-3).
pub(crate) fn revise(
    tx: &mut Transaction<'_>,
    secret: &mut Secret,
    content: &Confidential<SecretData>,
) -> Result<bool, Refusal> {
    let sealed = sealed(content)?;
    let latest = tx.state.secret_content(&secret.id, secret.latest);
    if latest.is_some_and(|latest| latest.sealed.checksum == sealed.checksum) {
        return Ok(false);
    }
    if tx.state.secret_revision_count(&secret.id) >= MAX_REVISIONS {
        let text = format!("a secret has at most {MAX_REVISIONS} revisions; remove some that nobody reads");
        return Err(quota(text, &secret.id));
    }
    secret.made = secret.made.next();
    secret.latest = secret.made;
    let now = tx.now();
    let content = SecretContent {
        id: secret.id,
        revision: secret.latest,
        sealed: sealed.clone(),
        expire: None,
        tell_at: None,
        expire_due: false,
        created_at: now,
        updated_at: now,
    };
    put_content(tx, content)?;
    Ok(true)
}

/// Refuses a label that another secret of the same owner has.
pub(crate) fn check_label(
    tx: &Transaction<'_>,
    owner: &SecretOwner,
    id: &SecretId,
    label: &str,
) -> Result<(), Refusal> {
    let taken =
        tx.state.secrets_of(owner).any(|other| other.id != *id && other.label.as_deref() == Some(label));
    match (taken, owner) {
        (false, _) => Ok(()),
        (true, SecretOwner::Model) => {
            Err(Refusal::already_exists(format!("secret with name {label:?} already exists")))
        }
        (true, _) => Err(Refusal::already_exists(format!("secret with label {label:?} already exists"))),
    }
}

/// Removes a secret, or some revisions of it. Refuses revisions that do not exist.
pub(crate) fn remove(tx: &mut Transaction<'_>, id: &SecretId, removal: &Removal) -> Result<(), Refusal> {
    let Some(secret) = tx.state.secret(id).cloned() else { return Ok(()) };
    let Removal::Revisions(revisions) = removal else {
        delete(tx, id);
        return Ok(());
    };
    for revision in revisions {
        if tx.state.secret_content(id, *revision).is_none() {
            let text = format!("secret {:?} revision {revision} not found", id.to_string());
            return Err(Refusal::not_found(text).about(format!("secret {id}")));
        }
        delete_revision(tx, id, *revision);
    }
    let latest = tx.state.secret_contents(id).next_back().map(|content| content.revision);
    match latest {
        None => delete(tx, id),
        Some(latest) => tx.put(Secret { latest, ..Secret::clone(&secret) }),
    }
    Ok(())
}

/// Deletes the secret itself and with it all access. The end of the commit deletes its parts.
fn delete(tx: &mut Transaction<'_>, id: &SecretId) {
    tx.delete(ModelKey::Secret(*id));
    tx.note_garbage(*id);
}

/// Deletes leftovers of removed secrets, and revisions that no unit tracks, in the room left at the end of a commit.
/// A single work item per kind has the rest, however many secrets a hook removed.
pub(crate) fn collect_garbage(tx: &mut Transaction<'_>, garbage: &BTreeSet<SecretId>) {
    let (mut gone, mut kept) = (Vec::new(), Vec::new());
    for id in garbage {
        match tx.state.secret(id).cloned() {
            Some(secret) if !prune(tx, &secret) => kept.push(*id),
            None if !sweep(tx, id) => gone.push(*id),
            _ => {}
        }
    }
    if !gone.is_empty() {
        tx.add_work(Work::RemoveSecrets { secrets: gone }, None);
    }
    if !kept.is_empty() {
        tx.add_work(Work::PruneSecrets { secrets: kept }, None);
    }
}

/// Deletes the leftovers of a removed secret. Returns true if nothing is left.
fn sweep(tx: &mut Transaction<'_>, id: &SecretId) -> bool {
    let contents = tx.state.secret_contents(id).map(|content| ModelKey::SecretContent(*id, content.revision));
    let expiries = tx.state.secret_expiries(id).map(|expiry| ModelKey::SecretExpiry(*id, expiry.revision));
    let consumers = tx.state.secret_consumers(id).map(|it| ModelKey::SecretConsumer(*id, it.unit.clone()));
    let parts: Vec<ModelKey> = contents.chain(expiries).chain(consumers).collect();
    for key in parts {
        if !tx.has_room(RESERVE) {
            return false;
        }
        tx.delete(key);
    }
    true
}

fn delete_revision(tx: &mut Transaction<'_>, id: &SecretId, revision: SecretRevision) {
    tx.delete(ModelKey::SecretContent(*id, revision));
    let expiry = ModelKey::SecretExpiry(*id, revision);
    if tx.state.get(&expiry).is_some() {
        tx.delete(expiry);
    }
}

/// Deletes the revisions that no unit tracks, if the secret has automatic pruning (S-8). Returns true if none is
/// left.
fn prune(tx: &mut Transaction<'_>, secret: &Secret) -> bool {
    if !secret.auto_prune {
        return true;
    }
    let (id, in_use) = (&secret.id, tx.state.revisions_in_use(secret));
    let obsolete: Vec<SecretRevision> = tx
        .state
        .secret_contents(id)
        .map(|content| content.revision)
        .filter(|revision| !in_use.contains(revision))
        .collect();
    for revision in obsolete {
        if !tx.has_room(RESERVE) {
            return false;
        }
        delete_revision(tx, id, revision);
    }
    true
}

/// Adds a work item to remove the secrets of a removed owner (S-10).
pub(crate) fn forget_owner(tx: &mut Transaction<'_>, owner: &SecretOwner) {
    let secrets: Vec<SecretId> = tx.state.secrets_of(owner).map(|secret| secret.id).collect();
    if !secrets.is_empty() {
        tx.add_work(Work::RemoveSecrets { secrets }, None);
    }
}

/// Adds a work item to delete the grants and tracked revisions of a removed reader (S-10). The worker finds them by
/// the reader's name, which no other reader can have before the end.
pub(crate) fn forget_reader(tx: &mut Transaction<'_>, reader: SecretReader) {
    if read_by(&tx.state, &reader).is_some() {
        tx.add_work(Work::ForgetSecretReader { reader, secrets: Vec::new() }, None);
    }
}

/// Returns a secret that a reader has a grant for, or tracks.
fn read_by(state: &ModelState, reader: &SecretReader) -> Option<SecretId> {
    let granted = state.secrets_granted_to(reader).next();
    let tracked = match reader {
        SecretReader::Unit(unit) => state.secrets_consumed_by(unit).next(),
        SecretReader::Application(_) => None,
    };
    granted.or(tracked).copied()
}

/// Returns true if a removed application still owns secrets or has grants. A new application of its name would get
/// them.
pub(crate) fn remain(state: &ModelState, gone: &ApplicationName) -> bool {
    state.secret_count(&SecretOwner::Application(gone.clone())) > 0
        || state.secrets_granted_to(&SecretReader::Application(gone.clone())).next().is_some()
}

/// Does one step of the worker: removes secrets, and adds a work item for the rest.
pub(crate) fn remove_step(tx: &mut Transaction<'_>, secrets: &[SecretId]) {
    for (index, id) in secrets.iter().enumerate() {
        if tx.has_room(RESERVE) {
            tx.delete(ModelKey::Secret(*id));
        }
        if !tx.has_room(RESERVE) || !sweep(tx, id) {
            let rest = secrets.get(index..).unwrap_or_default().to_vec();
            tx.add_work(Work::RemoveSecrets { secrets: rest }, None);
            return;
        }
    }
}

/// Does one step of the worker: deletes a reader's grants and tracked revisions, of the given secrets or of all.
/// Returns true if the work item is done.
pub(crate) fn forget_step(tx: &mut Transaction<'_>, reader: &SecretReader, secrets: &[SecretId]) -> bool {
    if secrets.is_empty() {
        while tx.has_room(RESERVE) {
            let Some(id) = read_by(&tx.state, reader) else { return true };
            forget(tx, &id, reader);
        }
        return false;
    }
    for (index, id) in secrets.iter().enumerate() {
        if !tx.has_room(RESERVE) {
            let rest = secrets.get(index..).unwrap_or_default().to_vec();
            tx.add_work(Work::ForgetSecretReader { reader: reader.clone(), secrets: rest }, None);
            break;
        }
        forget(tx, id, reader);
    }
    true
}

fn forget(tx: &mut Transaction<'_>, id: &SecretId, reader: &SecretReader) {
    if let Some(secret) = tx.state.secret(id).filter(|secret| secret.access.contains_key(reader)).cloned() {
        let mut secret = Secret::clone(&secret);
        secret.access.remove(reader);
        tx.put(secret);
    }
    if let SecretReader::Unit(unit) = reader
        && tx.state.secret_consumer(id, unit).is_some()
    {
        stop_tracking(tx, id, unit);
    }
}

fn stop_tracking(tx: &mut Transaction<'_>, id: &SecretId, unit: &UnitName) {
    tx.delete(ModelKey::SecretConsumer(*id, unit.clone()));
    tx.note_garbage(*id);
}
