//! The changes of secrets in a hook's commit (`docs/hook-model.md` 5.9), in the order create, update, track, grant
//! and revoke, remove (C-4).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal, RelationId,
    commit::{HookEffects, Transitions},
    secret::{
        AccessChange, MAX_DESCRIPTION_BYTES, MAX_LABEL_BYTES, NewSecret, SecretId, SecretOwner, SecretReader,
        SecretRevision, SecretUpdate, TOLD_AGAIN_SECONDS, Tracked, Tracking,
    },
    status::Life,
};

use super::life;
use crate::{
    access::check::denied,
    entity::{Secret, SecretConsumer, SecretExpiry, Unit},
    transaction::Transaction,
};

/// The most secrets that one unit tracks. Each is part of its view.
const MAX_CONSUMED: usize = 1_000;

/// The unit whose hook commits the changes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Committer<'a> {
    pub(crate) unit: &'a Unit,
    /// True if the unit leads its application in the commit's leader term (D-4).
    pub(crate) leads: bool,
}

/// Applies the changes.
pub(crate) fn apply(
    tx: &mut Transaction<'_>,
    committer: Committer<'_>,
    effects: &HookEffects,
) -> Result<(), Refusal> {
    let changes = &effects.secrets;
    for (id, new) in &changes.add {
        add(tx, committer, *id, new)?;
    }
    for (id, update) in &changes.update {
        self::update(tx, committer, id, update)?;
    }
    for (id, tracking) in &changes.track {
        track(tx, committer.unit, id, tracking)?;
    }
    for (id, access) in &changes.access {
        self::access(tx, committer, id, access)?;
    }
    for (id, removal) in &changes.remove {
        managed(tx, committer, id)?;
        life::remove(tx, id, removal)?;
    }
    Ok(())
}

/// Notes the rotations and expiries that the unit was told of (S-9).
pub(crate) fn note_reported_expiries(tx: &mut Transaction<'_>, unit: &Unit, transitions: &Transitions) {
    for (id, latest) in &transitions.rotated {
        let Some(secret) = own(tx, unit, id) else { continue };
        note_rotated(tx, secret, *latest);
    }
    for key in &transitions.expired {
        if own(tx, unit, &key.id).is_none() {
            continue;
        }
        let expiry = tx.state.secret_expiry(&key.id, key.revision).filter(|expiry| expiry.expire_due);
        if let Some(expiry) = expiry {
            tx.put(SecretExpiry { expire_due: false, tell_at: again(tx), ..expiry });
        }
    }
}

/// Sets the next rotation from the policy if a newer revision exists than the owner was told of. Otherwise the owner
/// is told again soon.
fn note_rotated(tx: &mut Transaction<'_>, secret: Secret, latest: SecretRevision) {
    if !secret.rotate_due {
        return;
    }
    let next_rotate = match secret.latest > latest {
        true => secret.rotate.next(tx.now()),
        false => again(tx),
    };
    tx.put(Secret { rotate_due: false, next_rotate, ..secret });
}

fn again(tx: &Transaction<'_>) -> Option<periapt_host_api::Timestamp> {
    tx.now().checked_add(jiff::SignedDuration::from_secs(TOLD_AGAIN_SECONDS)).ok()
}

/// Returns a secret that the unit or its application owns.
fn own(tx: &Transaction<'_>, unit: &Unit, id: &SecretId) -> Option<Secret> {
    let owns = |secret: &&std::sync::Arc<Secret>| match &secret.owner {
        SecretOwner::Unit(owner) => *owner == unit.name,
        SecretOwner::Application(owner) => owner == unit.name.application(),
        SecretOwner::Model => false,
    };
    tx.state.secret(id).filter(owns).map(|secret| Secret::clone(secret))
}

/// Returns a secret that this unit may change now (S-7). About others the charm does not learn if they exist.
fn managed(tx: &Transaction<'_>, committer: Committer<'_>, id: &SecretId) -> Result<Secret, Refusal> {
    let Committer { unit, leads } = committer;
    let secret = own(tx, unit, id).ok_or_else(|| denied().about(format!("secret {id}")))?;
    match &secret.owner {
        SecretOwner::Application(_) if !leads => Err(not_leader(unit)),
        _ => Ok(secret),
    }
}

fn not_leader(unit: &Unit) -> Refusal {
    Refusal::new(ErrorCode::NotLeader, "this unit is not the leader").about(format!("unit {}", unit.name))
}

fn check_texts(label: Option<&str>, description: Option<&str>) -> Result<(), Refusal> {
    for (what, text, bound) in
        [("label", label, MAX_LABEL_BYTES), ("description", description, MAX_DESCRIPTION_BYTES)]
    {
        if let Some(bytes) = text.map(str::len).filter(|bytes| *bytes > bound) {
            let text = format!("a secret's {what} takes {bytes} bytes, at most {bound} are allowed");
            return Err(Refusal::new(ErrorCode::QuotaExceeded, text));
        }
    }
    Ok(())
}

fn add(
    tx: &mut Transaction<'_>,
    Committer { unit, leads }: Committer<'_>,
    id: SecretId,
    new: &NewSecret,
) -> Result<(), Refusal> {
    match &new.owner {
        SecretOwner::Unit(owner) if *owner == unit.name => {}
        SecretOwner::Application(owner) if owner == unit.name.application() => {
            if !leads {
                return Err(not_leader(unit));
            }
        }
        _ => return Err(denied()),
    }
    check_texts(new.label.as_deref(), Some(&new.description))?;
    if let Some(label) = &new.label {
        life::check_label(tx, &new.owner, &id, label)?;
    }
    let now = tx.now();
    let secret = Secret {
        id,
        owner: new.owner.clone(),
        label: new.label.clone(),
        description: new.description.clone(),
        rotate: new.rotate,
        next_rotate: new.rotate.next(now),
        rotate_due: false,
        auto_prune: false,
        latest: SecretRevision(1),
        made: SecretRevision(1),
        access: BTreeMap::new(),
        created_at: now,
        updated_at: now,
    };
    life::add(tx, secret, &new.content, new.expire)
}

fn update(
    tx: &mut Transaction<'_>,
    committer: Committer<'_>,
    id: &SecretId,
    update: &SecretUpdate,
) -> Result<(), Refusal> {
    let before = managed(tx, committer, id)?;
    let mut secret = before.clone();
    check_texts(update.label.as_deref(), update.description.as_deref())?;
    if let Some(label) = &update.label {
        life::check_label(tx, &secret.owner, id, label)?;
        secret.label = Some(label.clone());
    }
    if let Some(description) = &update.description {
        secret.description.clone_from(description);
    }
    if let Some(rotate) = update.rotate.filter(|rotate| *rotate != secret.rotate) {
        secret.rotate = rotate;
        secret.next_rotate = rotate.next(tx.now());
        secret.rotate_due = false;
    }
    if let Some(content) = &update.content {
        life::revise(tx, &mut secret, content)?;
    }
    let now = tx.now();
    if update.expire.is_some()
        && let Some(expiry) = tx.state.secret_expiry(id, secret.latest)
    {
        let (expire, tell_at) = (update.expire, update.expire);
        tx.put(SecretExpiry { expire, tell_at, expire_due: false, updated_at: now, ..expiry });
    }
    if secret != before || update.expire.is_some() {
        secret.updated_at = now;
        life::put(tx, secret)?;
    }
    Ok(())
}

/// Tracks a revision (S-1). If the unit has lost access since it read, nothing is tracked, and its hook does not
/// fail.
fn track(tx: &mut Transaction<'_>, unit: &Unit, id: &SecretId, tracking: &Tracking) -> Result<(), Refusal> {
    let Some(secret) = tx.state.secret(id).cloned() else { return Ok(()) };
    if !tx.state.may_read_secret(&secret, &unit.name) {
        return Ok(());
    }
    let present = tx.state.secret_consumer(id, &unit.name);
    if present.is_none() && tx.state.consumed_count(&unit.name) >= MAX_CONSUMED {
        let text = format!("a unit reads at most {MAX_CONSUMED} secrets");
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("unit {}", unit.name)));
    }
    check_texts(tracking.label.as_deref(), None)?;
    let label = tracking.label.clone().or_else(|| present.and_then(|present| present.label.clone()));
    if let Some(label) = &label {
        let taken = tx.state.secrets_consumed_by(&unit.name).any(|other| {
            let consumer = tx.state.secret_consumer(other, &unit.name);
            other != id && consumer.is_some_and(|consumer| consumer.label.as_ref() == Some(label))
        });
        if taken {
            let text = format!("secret with label {label:?} already exists");
            return Err(Refusal::already_exists(text).about(format!("unit {}", unit.name)));
        }
    }
    let tracked = match tracking.revision {
        Tracked::Latest => secret.latest,
        Tracked::Revision(revision) => revision.min(secret.latest),
    };
    tx.put(SecretConsumer { id: *id, unit: unit.name.clone(), tracked, label });
    tx.note_garbage(*id);
    Ok(())
}

fn access(
    tx: &mut Transaction<'_>,
    committer: Committer<'_>,
    id: &SecretId,
    changes: &BTreeMap<SecretReader, AccessChange>,
) -> Result<(), Refusal> {
    let mut secret = managed(tx, committer, id)?;
    // Grants by removed relations are dropped on this occasion.
    secret.access.retain(|_, relation| tx.state.grant_holds(relation.as_ref()));
    for (reader, change) in changes {
        match change {
            AccessChange::Revoke => {
                secret.access.remove(reader);
            }
            AccessChange::Grant(relation) => {
                check_relation(tx, committer.unit, *relation, reader)?;
                secret.access.insert(reader.clone(), Some(*relation));
            }
        }
    }
    if secret.access.len() > life::MAX_GRANTS {
        let text = format!("a secret has at most {} grants", life::MAX_GRANTS);
        return Err(Refusal::new(ErrorCode::QuotaExceeded, text).about(format!("secret {id}")));
    }
    life::put(tx, secret)
}

/// Checks that a secret is granted through a relation of the unit's application, to the application at the other end.
fn check_relation(
    tx: &Transaction<'_>,
    unit: &Unit,
    id: RelationId,
    reader: &SecretReader,
) -> Result<(), Refusal> {
    let relation =
        tx.state.relation(&id).filter(|relation| relation.life != Life::Dead).ok_or_else(denied)?;
    let own = unit.name.application();
    let other = relation.end_of(own).and_then(|_| relation.other_end(own)).ok_or_else(denied)?;
    if other.application == *reader.application() { Ok(()) } else { Err(denied()) }
}
