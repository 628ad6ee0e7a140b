//! Secrets as one hook sees them (`docs/hook-model.md` 5.9): the snapshot's secrets, with this hook's changes. The host
//! fetches content at the first read; changes go with the hook's commit.

use std::fmt;

use periapt_host_api::{
    Timestamp,
    secret::{
        MAX_DESCRIPTION_BYTES, MAX_LABEL_BYTES, RotatePolicy, SecretData, SecretId, SecretOwner, SecretUri,
    },
    view::SecretView,
};
use serde::{Deserialize, Serialize};

use crate::{CallError, CallTime, context::HookRun, lease::Interruption};

mod access;
mod change;
mod gathered;
mod read;
mod typed;

pub use gathered::IdSeed;
pub(crate) use gathered::Secrets;
pub use read::{GetMode, SecretInfo};

/// The owner of a new secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NewOwner {
    /// The application; leader only.
    Application,
    /// The unit.
    Unit,
}

/// The metadata of a secret, as a charm sets it. A field that is none stays, or has its default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct SecretMetadata {
    /// The owner's label.
    pub label: Option<String>,
    /// The description, for operators.
    pub description: Option<String>,
    /// The rotation policy.
    pub rotate: Option<RotatePolicy>,
    /// The time at which the latest revision expires.
    pub expire: Option<Timestamp>,
}

impl SecretMetadata {
    fn check(&self) -> Result<(), CallError> {
        for (what, text, bound) in [
            ("label", &self.label, MAX_LABEL_BYTES),
            ("description", &self.description, MAX_DESCRIPTION_BYTES),
        ] {
            check_text(what, text.as_deref(), bound)?;
        }
        Ok(())
    }

    /// Returns the most bytes of the metadata in a commit.
    fn bytes(&self) -> usize {
        let texts = [&self.label, &self.description];
        // JSON escapes a control character to six bytes.
        texts.into_iter().flatten().map(|text| text.len() * 6).sum()
    }
}

fn check_text(what: &str, text: Option<&str>, bound: usize) -> Result<(), CallError> {
    match text.map(str::len).filter(|bytes| *bytes > bound) {
        None => Ok(()),
        Some(bytes) => Err(CallError::LimitExceeded(format!(
            "a secret's {what} takes {bytes} bytes; at most {bound} are allowed"
        ))),
    }
}

/// Bytes of one change of a secret in a commit, beside its texts.
const CHANGE_BYTES: usize = 256;

/// Bytes that sealing adds to content: a nonce and a tag, and the braces around it.
const SEAL_BYTES: usize = 64;

/// Bytes of one entry of a secret's content, beside its key and value.
const ENTRY_BYTES: usize = 8;

/// Returns the bytes of content as the store keeps it: sealed, in base64.
fn content_bytes(content: &SecretData) -> usize {
    let open = content.len() + content.base64().count() * ENTRY_BYTES;
    (open + SEAL_BYTES).div_ceil(3) * 4
}

fn not_found(what: impl fmt::Display) -> CallError {
    CallError::NotFound(format!("secret {:?} not found", what.to_string()))
}

fn not_leader() -> Interruption {
    CallError::NotLeader("this unit is not the leader".to_owned()).into()
}

fn label_taken(label: &str) -> CallError {
    CallError::AlreadyExists(format!("secret with label {label:?} already exists"))
}

impl HookRun {
    /// Parses a secret's URI. Refuses a URI of another model.
    pub(crate) fn secret_uri(&self, text: &str) -> Result<SecretId, CallError> {
        let uri: SecretUri = text.parse().map_err(|error| CallError::invalid(format!("{error}")))?;
        match uri.model {
            Some(model) if model != self.snapshot.model().uuid => Err(not_found(text)),
            _ => Ok(uri.id),
        }
    }

    /// Returns a secret of the snapshot, unless this hook has removed it.
    fn secret_view(&self, id: &SecretId) -> Option<&SecretView> {
        let removed =
            matches!(self.secrets.changes.remove.get(id), Some(periapt_host_api::secret::Removal::Secret));
        self.snapshot.view.secrets.get(id).filter(|_| !removed)
    }

    /// Returns the owner of a secret of this unit or its application, or of one made in this hook.
    fn own_secret(&self, id: &SecretId) -> Option<&SecretOwner> {
        if let Some(new) = self.secrets.changes.add.get(id) {
            return Some(&new.owner);
        }
        self.secret_view(id)
            .filter(|secret| secret.is_owned_by(&self.snapshot.unit))
            .map(|secret| &secret.owner)
    }

    /// Notes the leadership that a change of an application's secret needs. Refuses a unit that does not lead (S-7).
    fn must_lead(&mut self, now: CallTime) -> Result<(), Interruption> {
        let term = self.leader_term(now)?.ok_or_else(not_leader)?;
        self.effects.rest_on(term);
        Ok(())
    }

    /// Refuses to change an application's secret without leadership. A secret of another owner passes: the commit
    /// refuses it.
    fn may_manage(&mut self, now: CallTime, id: &SecretId) -> Result<(), Interruption> {
        match self.own_secret(id) {
            Some(SecretOwner::Application(_)) => self.must_lead(now),
            _ => Ok(()),
        }
    }

    /// Returns the owner's label of an own secret, with this hook's changes.
    fn owner_label(&self, id: &SecretId) -> Option<&str> {
        let changes = &self.secrets.changes;
        if let Some(new) = changes.add.get(id) {
            return new.label.as_deref();
        }
        let updated = changes.update.get(id).and_then(|update| update.label.as_deref());
        updated.or_else(|| self.secret_view(id)?.as_owned_by(&self.snapshot.unit)?.label.as_deref())
    }

    /// Returns the unit's own label for a secret that it reads (S-5).
    fn consumer_label(&self, id: &SecretId) -> Option<&str> {
        let tracked = self.secrets.changes.track.get(id).and_then(|tracking| tracking.label.as_deref());
        tracked.or_else(|| {
            let consumer = self.secret_view(id)?.consumers.get(&self.snapshot.unit)?;
            consumer.label.as_deref()
        })
    }

    /// Iterates over the secrets of the unit and its application, with those made in this hook.
    fn own_secrets(&self) -> impl Iterator<Item = SecretId> {
        let added = self.secrets.changes.add.keys();
        self.snapshot.view.secrets.keys().chain(added).copied().filter(|id| self.own_secret(id).is_some())
    }
}
