//! The changes to secrets that one hook made, and the content that the host fetched for it.

use std::{collections::BTreeMap, fmt};

use periapt_host_api::secret::{SecretChanges, SecretData, SecretId, SecretKey, SecretRevision};

use crate::{CallError, lease::Interruption};

/// The seed of the ids of new secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdSeed(pub [u8; 32]);

/// Hides the seed: a reader of it could compute the ids.
impl fmt::Debug for IdSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("IdSeed(..)")
    }
}

/// Bytes of a refusal in memory, with its text.
const REFUSAL_BYTES: usize = 256;

/// This hook's changes, and the content that was fetched for it.
#[derive(Debug)]
pub(crate) struct Secrets {
    ids: IdSeed,
    drawn: u64,
    pub(super) changes: SecretChanges,
    fetched: BTreeMap<SecretKey, Result<SecretData, CallError>>,
    fetched_bytes: usize,
}

impl Secrets {
    pub(crate) fn new(ids: IdSeed) -> Self {
        let (changes, fetched) = (SecretChanges::default(), BTreeMap::new());
        Self { ids, drawn: 0, changes, fetched, fetched_bytes: 0 }
    }

    pub(crate) fn fetched(&mut self, key: SecretKey, content: Result<SecretData, CallError>, bound: usize) {
        let bytes = content.as_ref().map_or(REFUSAL_BYTES, SecretData::len);
        self.fetched_bytes += bytes;
        if self.fetched_bytes > bound {
            self.fetched.clear();
            self.fetched_bytes = bytes;
        }
        self.fetched.insert(key, content);
    }

    /// Returns content that the host fetched. A refusal of a secret that the view lacks holds for the rest of the hook,
    /// which sees one state of the model. Any other failure is returned once: the next call tries again.
    pub(super) fn content(&mut self, key: SecretKey) -> Result<SecretData, Interruption> {
        match self.fetched.get(&key) {
            None => Err(Interruption::NeedsSecret(key)),
            Some(Ok(content)) => Ok(content.clone()),
            Some(Err(error @ (CallError::NotFound(_) | CallError::PermissionDenied(_))))
                if key.revision == SecretRevision::NONE =>
            {
                Err(error.clone().into())
            }
            Some(Err(error)) => {
                let error = error.clone();
                self.fetched.remove(&key);
                Err(error.into())
            }
        }
    }

    pub(super) fn draw(&mut self) -> SecretId {
        let id = SecretId::drawn(&self.ids.0, self.drawn);
        self.drawn += 1;
        id
    }

    pub(crate) fn into_changes(self) -> SecretChanges {
        self.changes
    }
}
