//! The durable store of models.
//!
//! A [`Store`] holds *entities* (key to value, all read at start, in chunks) and *records* (append-only rows, read by
//! range). It handles bytes; [`codec`] gives them a meaning, with versions and a fixture of every released form.
//! [`MemoryStore`] is here, RocksDB in a crate of its own; every implementation passes one suite (the feature
//! `suite`).

pub mod codec;
pub mod key;
mod memory;
mod stored;
#[cfg(feature = "suite")]
pub mod suite;

use std::{future::ready, path::Path, time::Duration};

use futures_util::future::{BoxFuture, FutureExt as _};
use periapt_host_api::{Revision, StoreId, Timestamp};

pub use memory::MemoryStore;
pub use stored::{EntityChunk, MAX_CHUNK_BYTES, MAX_CHUNK_ENTITIES, StoredEntity, StoredState};

/// The most bytes of keys and values that one command may write. An etcd transaction takes little more.
pub const MAX_COMMIT_BYTES: usize = 1 << 20;

/// The most entities that one command may write. An etcd transaction takes little more.
pub const MAX_COMMIT_KEYS: usize = 100;

/// The reason why a store failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The write failed and has no effect; the store stays usable.
    #[error("the store refused a write: {0}")]
    Refused(String),
    /// The outcome of the last write is unknown: the caller must close the store and open it again.
    #[error("the store failed and must be reopened: {0}")]
    Failed(String),
    /// Another program wrote the files.
    #[error("not a store of periapt: {0}; use a separate directory")]
    Foreign(String),
    /// Another writer has committed since the batch's expected head.
    #[error("the store's head is {have}, the batch was made for {expected}")]
    HeadMoved {
        /// The head that the batch expects.
        expected: Revision,
        /// The store's head.
        have: Revision,
    },
    /// The files are corrupt.
    #[error("the store is damaged: {0}; restore it from a backup")]
    Damaged(String),
    /// The disk fails while the store is opened; the files may be intact.
    #[error("the store cannot be opened: {0}")]
    Unavailable(String),
    /// A newer Periapt wrote the store.
    #[error("the store has schema {found}, this program knows up to {known}: use a newer periapt")]
    TooNew {
        /// The schema of the store.
        found: u32,
        /// The newest known schema.
        known: u32,
    },
    /// Another process has the store open.
    #[error("the store is in use by another process: {0}")]
    InUse(String),
}

/// The writes of one commit: all or none take effect, and they are durable when `commit` returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The head that the batch expects.
    pub expected: Revision,
    /// The entities to put (`Some`) or to delete (`None`), by key; each key at most once.
    pub entities: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// The records to append, in order.
    pub records: Vec<NewRecord>,
    /// A value that the store keeps with its head, in the place of the earlier one; none leaves that one. A controller
    /// keeps the end of its log here.
    pub note: Option<Vec<u8>>,
}

/// A record to append.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The name of the record's sequence (model, kind, unit); see [`key::record_prefix`].
    pub prefix: Vec<u8>,
    /// The record's own time, which decides its pruning.
    pub at: Timestamp,
    /// The content.
    pub body: Vec<u8>,
}

/// An appended record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The record's position in its sequence.
    pub position: RecordPosition,
    /// The record's own time.
    pub at: Timestamp,
    /// The content.
    pub body: Vec<u8>,
}

/// A position in a sequence of records; later records have greater ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPosition {
    /// The revision of the commit.
    pub revision: Revision,
    /// The record's index in the commit.
    pub index: u32,
}

/// The order in which records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The oldest record first, after a position.
    OldestFirst {
        /// The exclusive start; none means the first record.
        after: Option<RecordPosition>,
    },
    /// The newest record first, before a position.
    NewestFirst {
        /// The exclusive start; none means the last record.
        before: Option<RecordPosition>,
    },
}

/// The decision on a record when its sequence is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retention {
    /// The record stays.
    Keep,
    /// The record is deleted.
    Drop,
}

/// A function that decides on each record of one sequence, once each, the newest first.
pub type RetentionPolicy = Box<dyn FnMut(&Record) -> Retention + Send>;

/// The content of a store at `revision`, records aside, as one value: see [`StoredState`] for reading it in chunks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LoadedState {
    /// The head.
    pub revision: Revision,
    /// All entities, sorted by key.
    pub entities: Vec<StoredEntity>,
    /// The newest [`Batch::note`].
    pub note: Option<Vec<u8>>,
}

/// A durable store of models that one controller keeps locally. Of several controllers each has its own, and their log
/// feeds all of them. Calls do not block the caller's thread.
pub trait Store: Send + Sync + 'static {
    /// Returns the store's identity. Revisions of different stores cannot be compared.
    fn id(&self) -> StoreId;

    /// Begins to read all entities. The head, the note and all chunks are of one moment, not before the call.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], and [`StoreError::Failed`] after a failed write. The chunks may end with one, too.
    fn load(&self) -> BoxFuture<'_, Result<StoredState, StoreError>>;

    /// Writes a batch durably and returns its revision, which is higher than all earlier ones.
    ///
    /// # Errors
    /// After [`StoreError::Failed`], every call fails until the store is opened again.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Writes a batch as [`commit`](Self::commit) does, but perhaps not durably: after a crash of the machine the store
    /// may be at any earlier revision. The caller has the batch elsewhere, in a log.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Returns once everything that was applied before the call is durable.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Deletes all staged entities.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn unstage(&self) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Keeps entities of a state that is to replace that of the store, each key once. Readers do not see them, and a store
    /// that is opened again has none.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn stage(&self, entities: Vec<StoredEntity>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Replaces all entities by the staged ones, and the head and the note, durably, wholly or not at all. Records stay. It
    /// takes no more memory than some chunks of a state that is read. Reading fails meanwhile with
    /// [`StoreError::Refused`].
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn replace_by_staged(
        &self,
        revision: Revision,
        note: Option<Vec<u8>>,
    ) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Replaces all entities, the head and the note by those of one value, as
    /// [`replace_by_staged`](Self::replace_by_staged) does.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn replace(&self, state: LoadedState) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            let LoadedState { revision, entities, note } = state;
            self.unstage().await?;
            self.stage(entities).await?;
            self.replace_by_staged(revision, note).await
        }
        .boxed()
    }

    /// Writes records of another store of the same log at their positions, perhaps not durably. The head stays.
    ///
    /// # Errors
    /// See [`commit`](Self::commit).
    fn import(&self, sequence: &[u8], records: Vec<Record>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Reads up to `limit` records of one sequence.
    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// Returns the names of up to `limit` sequences, in order, after a name. All sequences with records are listed;
    /// those whose records were all pruned or forgotten are not.
    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>>;

    /// Deletes the records of one sequence that `policy` drops, and returns their number. A crash may leave some of
    /// them for the next call.
    fn prune(&self, prefix: &[u8], policy: RetentionPolicy) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Deletes all records of all sequences whose names start with `prefix`.
    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>>;

    /// Returns the size of the store in bytes: on its disk, or in memory if it has none.
    fn size(&self) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Returns the time that the last commit took to write and sync; none before the first commit, and in a store
    /// that does not sync.
    fn sync_time(&self) -> Option<Duration> {
        None
    }

    /// Writes a consistent copy of the store into a new directory, while the store is in use. Returns the revision of
    /// the copy.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the directory exists or cannot be written, and from a store that has no files.
    fn checkpoint(&self, directory: &Path) -> BoxFuture<'_, Result<Revision, StoreError>> {
        let text = format!("this store has no files to copy into {}", directory.display());
        ready(Err(StoreError::Refused(text))).boxed()
    }
}
