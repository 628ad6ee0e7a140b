//! The encryption of confidential data in requests, with the controller's key, before the request is evaluated. The
//! caller has the key and the cipher.

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    agent::RunnerCommand,
    command::{Command, SecretSelector},
    commit::UnitCommit,
    journal::{Confidence, JournalConfidence, JournalRecord},
    secret::{Confidential, Sealed, SealedFor, SecretData, SecretId},
};

use super::command::find;
use crate::{input::Input, root::Root};

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
        _ => Ok(()),
    }
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
