//! The encryption of confidential data in requests, with the controller's key, before the request is evaluated. The
//! caller has the key and the cipher.

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    agent::RunnerCommand,
    command::{Command, ControllerCommand, SecretSelector},
    commit::UnitCommit,
    journal::{Confidence, JournalConfidence, JournalRecord},
    migration::ImportPage,
    secret::{Confidential, Sealed, SealedFor, SecretData, SecretId},
};

use serde_json::Value;

use super::command::find;
use crate::{
    entity::{Entity, SecretContent},
    input::Input,
    migration,
    root::{Root, changes::RecordBody},
};

/// The stored name of the kind of entity that holds content.
const SECRET_CONTENT: &str = "secret-content";

/// A cipher with the controller's key.
///
/// Sealing equal bytes for the same context gives equal results, so that a repeated commit is recognized.
pub trait Sealer {
    /// Encrypts bytes for one context.
    fn seal(&self, what: SealedFor, bytes: &[u8]) -> Result<Sealed, Refusal>;

    /// Decrypts bytes that were sealed for this context. Returns none for another context or another key.
    fn open(&self, what: SealedFor, sealed: &Sealed) -> Option<Vec<u8>>;
}

/// Encrypts the confidential data of a request. `seed` is random, for the id of a new secret.
///
/// # Errors
/// Invalid secret content, or a secret that does not exist.
pub fn seal_input(
    root: &Root,
    input: &mut Input,
    sealer: &dyn Sealer,
    seed: [u8; 16],
) -> Result<(), Refusal> {
    match input {
        Input::Runner(model, RunnerCommand::Commit(commit)) => {
            let UnitCommit { effects, journal, .. } = &mut **commit;
            for (id, content) in effects.secrets.contents_mut() {
                seal_content(sealer, SealedFor::Content(*model, id), content)?;
            }
            match journal {
                Some(journal) => seal_journal(sealer, SealedFor::Journal(*model), journal),
                None => Ok(()),
            }
        }
        Input::Model(model, Command::AddSecret { id, content, .. }) => {
            let drawn = *id.get_or_insert_with(|| SecretId::drawn(&seed, 0));
            seal_content(sealer, SealedFor::Content(*model, drawn), content)
        }
        Input::Model(model, Command::UpdateSecret { secret, content: Some(content), .. }) => {
            let state =
                root.model(model).ok_or_else(|| Refusal::not_found(format!("model {model} not found")))?;
            let id = find(state, secret)?.id;
            // Content that is sealed for one secret must not get into another one that takes its name.
            *secret = SecretSelector::Id(id);
            seal_content(sealer, SealedFor::Content(*model, id), content)
        }
        Input::Controller(ControllerCommand::Migrate { model, target }) => {
            let Confidential::Open(token) = &target.token else {
                return Err(Refusal::bad_request("a token must come open"));
            };
            let sealed = sealer.seal(SealedFor::Migration(*model), token.reveal().as_bytes())?;
            target.token = Confidential::Sealed(sealed);
            Ok(())
        }
        Input::Controller(ControllerCommand::ImportPage(page)) => seal_page(sealer, page),
        _ => Ok(()),
    }
}

/// Encrypts the content in a part of a model from another controller.
fn seal_page(sealer: &dyn Sealer, page: &mut ImportPage) -> Result<(), Refusal> {
    let model = page.model;
    let stored = |value: Result<Value, serde_json::Error>| {
        value.map_err(|error| Refusal::new(ErrorCode::Internal, format!("a part has no form: {error}")))
    };
    for value in &mut page.entities {
        // Only what holds content is read here; all else is read once it is evaluated.
        if value.get(SECRET_CONTENT).is_none() {
            continue;
        }
        let Entity::SecretContent(content) = migration::import::entity(value)? else { continue };
        let open = serde_json::from_str(&content.sealed.bytes).ok();
        let open = open.filter(|_| content.sealed.checksum.is_empty());
        let open = open.ok_or_else(|| Refusal::bad_request("a secret's content must come open"))?;
        let mut open = Confidential::Open(open);
        seal_content(sealer, SealedFor::Content(model, content.id), &mut open)?;
        let Confidential::Sealed(sealed) = open else { continue };
        *value = stored(serde_json::to_value(Entity::from(SecretContent {
            sealed,
            ..SecretContent::clone(&content)
        })))?;
    }
    for record in &mut page.records {
        let body = serde_json::from_value(record.body.clone())
            .map_err(|error| Refusal::bad_request(format!("a row of history cannot be read: {error}")))?;
        let RecordBody::Journal(mut journal) = body else { continue };
        seal_journal(sealer, SealedFor::Journal(model), &mut journal)?;
        record.body = stored(serde_json::to_value(RecordBody::Journal(journal)))?;
    }
    Ok(())
}

/// Returns an entity as it goes to another controller, over a connection that is encrypted: with the content of a secret
/// decrypted.
///
/// # Errors
/// The key differs from that of the entity.
pub fn open_entity(sealer: &dyn Sealer, model: &ModelUuid, entity: Entity) -> Result<Entity, Refusal> {
    let Entity::SecretContent(content) = &entity else { return Ok(entity) };
    let lost =
        || Refusal::new(ErrorCode::Internal, "a secret was sealed under another key than there is now");
    let what = SealedFor::Content(*model, content.id);
    let open = open_content(sealer, what, &content.sealed).ok_or_else(lost)?;
    let bytes = serde_json::to_string(&open).map_err(|_| lost())?;
    let sealed = Sealed { checksum: String::new(), bytes };
    Ok(SecretContent { sealed, ..SecretContent::clone(content) }.into())
}

/// Encrypts content from the wire. Refuses sealed content: only the controller may seal.
fn seal_content(
    sealer: &dyn Sealer,
    what: SealedFor,
    content: &mut Confidential<SecretData>,
) -> Result<(), Refusal> {
    let Confidential::Open(data) = content else {
        return Err(Refusal::bad_request("a secret's content must come open"));
    };
    let wrong = |error: periapt_host_api::secret::ContentError| Refusal::bad_request(error.to_string());
    data.check().map_err(wrong)?;
    let sealed = sealer.seal(what, &data.to_bytes().map_err(wrong)?)?;
    *content = Confidential::Sealed(sealed);
    Ok(())
}

fn seal_journal(sealer: &dyn Sealer, what: SealedFor, journal: &mut JournalRecord) -> Result<(), Refusal> {
    let seed = Confidence(std::mem::take(&mut journal.seed));
    let secrets = std::mem::take(&mut journal.calls.secrets);
    let bytes = serde_json::to_vec(&JournalConfidence { seed, secrets })
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("a journal has no form: {error}")))?;
    journal.sealed = Some(sealer.seal(what, &bytes)?);
    Ok(())
}

/// Returns a journal record with its seed and confidential answers decrypted. A record without sealed data stays
/// unchanged.
///
/// # Errors
/// The key differs from that of the record.
pub fn open_journal(
    sealer: &dyn Sealer,
    model: &ModelUuid,
    mut record: JournalRecord,
) -> Result<JournalRecord, Refusal> {
    let Some(sealed) = record.sealed.take() else { return Ok(record) };
    let lost =
        || Refusal::new(ErrorCode::Internal, "a journal was sealed under another key than there is now");
    let bytes = sealer.open(SealedFor::Journal(*model), &sealed).ok_or_else(lost)?;
    let JournalConfidence { seed, secrets } = serde_json::from_slice(&bytes).map_err(|_| lost())?;
    record.seed = seed.0;
    record.calls.secrets = secrets;
    Ok(record)
}

/// Returns the decrypted content, or none if the key or context differs.
pub fn open_content(sealer: &dyn Sealer, what: SealedFor, sealed: &Sealed) -> Option<SecretData> {
    SecretData::from_bytes(&sealer.open(what, sealed)?)
}
