//! What is known of blobs besides the model: who has asked for them, and which nobody took.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use periapt_host_api::Digest;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, RwLockWriteGuard};

/// How long something is kept that nobody uses and nobody asks for, in milliseconds: far longer than it takes from an
/// upload to the command that it is for, and as long as an action may read what was replaced since it began.
const GRACE_MS: u64 = 3_600_000;

/// What is known of blobs of one kind besides the model. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlobCollector(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notes: Mutex<Notes>,
    /// Read while a blob is kept and made known, written while one is thrown away.
    changing: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// Since when nobody uses a blob, as far as it was looked.
    unused: BTreeMap<Digest, u64>,
    /// Blobs that were kept, and were refused afterwards, or nobody knows.
    refused: BTreeSet<Digest>,
}

impl BlobCollector {
    /// Somebody looks whether the blob is here, and will go by the answer.
    pub(crate) fn note_request(&self, digest: &Digest) {
        self.notes().unused.remove(digest);
    }

    /// From before a blob is kept until it is known, so that it is not thrown away in between.
    pub(crate) async fn lock_for_upload(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0.changing).read_owned().await
    }

    /// A blob was kept, and not taken.
    pub(crate) fn note_refused(&self, digest: Digest) {
        self.notes().refused.insert(digest);
    }

    /// Keeps everybody else from keeping blobs, while one is thrown away.
    pub(crate) async fn lock_for_deletion(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.changing.write().await
    }

    /// Blobs that were kept and not taken.
    pub(crate) fn refused(&self) -> Vec<Digest> {
        self.notes().refused.iter().copied().collect()
    }

    /// A refused blob is known after all, or gone.
    pub(crate) fn forget_refused(&self, digest: &Digest) {
        self.notes().refused.remove(digest);
    }

    /// Whether nobody has used or asked for a blob since it was found unused.
    pub(crate) fn is_unused(&self, digest: &Digest) -> bool {
        self.notes().unused.contains_key(digest)
    }

    /// A blob that nobody used is known no longer.
    pub(crate) fn forget(&self, digest: &Digest) {
        self.notes().unused.remove(digest);
    }

    /// What was unused for long enough, as seen now and before.
    pub(crate) fn due(&self, unused: &BTreeSet<Digest>, now_ms: u64) -> Vec<Digest> {
        let mut notes = self.notes();
        notes.unused.retain(|digest, _| unused.contains(digest));
        for digest in unused {
            notes.unused.entry(*digest).or_insert(now_ms);
        }
        let old = notes.unused.iter().filter(|(_, since)| now_ms.saturating_sub(**since) >= GRACE_MS);
        old.map(|(digest, _)| *digest).collect()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Each call leaves the notes whole.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
