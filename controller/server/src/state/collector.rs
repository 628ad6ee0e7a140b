//! The collector of unused blobs: its notes say which blobs are unused, and which may be unregistered.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::Digest;
use tokio::sync::{OwnedRwLockReadGuard, RwLock, RwLockWriteGuard};

/// The time for which an unused blob is kept, in milliseconds. It is far longer than the time from an upload to its
/// command, and lets a running action read content that was replaced after its start.
const GRACE_MS: u64 = 3_600_000;

/// The collector of unused blobs of one kind. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct BlobCollector(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notes: Mutex<Notes>,
    /// The number of holds: while there is one, no blob is forgotten.
    holds: Arc<AtomicUsize>,
    /// A lock: shared by uploads that store and register a blob, exclusive for the deletion of one.
    changing: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The unused blobs, with the time at which each was first found unused.
    unused: BTreeMap<Digest, u64>,
    /// The stored blobs that may be unregistered: their registration or their deletion failed.
    refused: BTreeSet<Digest>,
}

/// A hold on all blobs of one kind.
#[derive(Debug)]
pub(crate) struct BlobHold(Arc<AtomicUsize>);

impl Drop for BlobHold {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl BlobCollector {
    /// Notes a request for a blob: the client relies on the answer, so the blob must not be deleted soon.
    pub(crate) fn note_request(&self, digest: &Digest) {
        self.notes().unused.remove(digest);
    }

    /// Keeps blobs from deletion while an upload stores a blob and registers it.
    pub(crate) async fn lock_for_upload(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0.changing).read_owned().await
    }

    /// Keeps all blobs from being forgotten, as long as the result is held.
    pub(crate) fn hold(&self) -> BlobHold {
        self.0.holds.fetch_add(1, Ordering::SeqCst);
        BlobHold(Arc::clone(&self.0.holds))
    }

    /// Notes a stored blob that may be unregistered.
    pub(crate) fn note_refused(&self, digest: Digest) {
        self.notes().refused.insert(digest);
    }

    /// Keeps uploads from storing blobs while a blob is deleted.
    pub(crate) async fn lock_for_deletion(&self) -> RwLockWriteGuard<'_, ()> {
        self.0.changing.write().await
    }

    /// Returns the stored blobs that may be unregistered.
    pub(crate) fn refused(&self) -> Vec<Digest> {
        self.notes().refused.iter().copied().collect()
    }

    /// Removes the note about a blob that turned out to be registered, or is deleted.
    pub(crate) fn forget_refused(&self, digest: &Digest) {
        self.notes().refused.remove(digest);
    }

    /// Returns true if a blob was not used or requested since it was found unused, and nobody holds all blobs.
    pub(crate) fn is_unused(&self, digest: &Digest) -> bool {
        self.0.holds.load(Ordering::SeqCst) == 0 && self.notes().unused.contains_key(digest)
    }

    /// Removes the note about an unused blob that the model has forgotten.
    pub(crate) fn forget(&self, digest: &Digest) {
        self.notes().unused.remove(digest);
    }

    /// Returns the blobs that were unused for [`GRACE_MS`]. `unused` are those that are unused now.
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
        // Each call leaves the notes consistent.
        self.0.notes.lock()
    }
}
