//! What keeps the model.
//!
//! A [`Store`] holds *entities* (key to value, read whole at start) and *records* (append-only rows, read by
//! range). It knows bytes; what they mean stands in [`codec`], with a version and a fixture of every released
//! form. Implementations: [`MemoryStore`] here, RocksDB and etcd in crates of their own; all of them pass
//! one suite (the feature `suite`).

pub mod codec;
pub mod key;
mod memory;
#[cfg(feature = "suite")]
pub mod suite;

use futures_util::future::BoxFuture;
use periapt_host_api::{Revision, StoreId, Timestamp};

pub use memory::MemoryStore;

/// The most that one command may write, in bytes of keys and values: an etcd transaction takes little more.
pub const MAX_COMMIT_BYTES: usize = 1 << 20;

/// The most entities that one command may write, for the same reason.
pub const MAX_COMMIT_KEYS: usize = 100;

/// Why a store did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The write failed and nothing of it will be seen; the store goes on.
    #[error("the store refused a write: {0}")]
    Refused(String),
    /// It is unknown whether the last write reached the disk: the store must be closed and opened again.
    #[error("the store failed and must be reopened: {0}")]
    Failed(String),
    /// What is there was written by another program.
    #[error("this is no store of periapt: {0}; name a directory of its own")]
    Foreign(String),
    /// Somebody else wrote since the head that the batch was made for.
    #[error("the store's head is {have}, the batch was made for {expected}")]
    HeadMoved {
        /// What the batch expected.
        expected: Revision,
        /// What is there.
        have: Revision,
    },
    /// What lies on the disk makes no sense.
    #[error("the store is damaged: {0}; restore it from a backup")]
    Damaged(String),
    /// The disk does not let the store be opened; what lies on it may be well.
    #[error("the store cannot be opened: {0}")]
    Unavailable(String),
    /// The store was written by a newer Periapt.
    #[error("the store has schema {found}, this program knows up to {known}: use a newer periapt")]
    TooNew {
        /// What was found.
        found: u32,
        /// The newest that is known.
        known: u32,
    },
    /// Another process has it open.
    #[error("the store is in use by another process: {0}")]
    InUse(String),
}

/// All writes of one batch: they happen together or not at all, and are on the disk when `commit` returns.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The head that the batch was made for.
    pub expected: Revision,
    /// Entities to put (`Some`) or to delete (`None`), by key; at most one entry a key.
    pub entities: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Records to append, in order.
    pub records: Vec<NewRecord>,
}

/// A record to be appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// The sequence of rows that it belongs to (model, kind, unit); see [`key::record_prefix`].
    pub prefix: Vec<u8>,
    /// Its own time, by which it is pruned.
    pub at: Timestamp,
    /// Content.
    pub body: Vec<u8>,
}

/// A record as it was appended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Where it stands in its sequence.
    pub position: RecordPosition,
    /// Its own time.
    pub at: Timestamp,
    /// Content.
    pub body: Vec<u8>,
}

/// A place in a sequence of records: later ones were appended later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordPosition {
    /// The commit.
    pub revision: Revision,
    /// Which of the commit's records.
    pub index: u32,
}

/// From which end records are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Oldest first, after a position.
    OldestFirst {
        /// Exclusive; none: from the first.
        after: Option<RecordPosition>,
    },
    /// Newest first, before a position.
    NewestFirst {
        /// Exclusive; none: from the last.
        before: Option<RecordPosition>,
    },
}

/// What becomes of a record when its sequence is pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It stays.
    Keep,
    /// It is deleted.
    Drop,
}

/// Is shown the records of one sequence, each once, the newest first, and says what becomes of them.
pub type Judge = Box<dyn FnMut(&Record) -> Verdict + Send>;

/// Everything that is kept in memory, as it was at `revision`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loaded {
    /// The head.
    pub revision: Revision,
    /// All entities, sorted by key.
    pub entities: Vec<(Vec<u8>, Vec<u8>)>,
}

/// A place that keeps the model. Calls do not block the caller's thread.
pub trait Store: Send + Sync + 'static {
    /// The store's identity: revisions of other stores mean nothing here.
    fn id(&self) -> StoreId;

    /// Reads all entities.
    fn load(&self) -> BoxFuture<'_, Result<Loaded, StoreError>>;

    /// Writes a batch, durably, and answers its revision: higher than all before.
    ///
    /// # Errors
    /// After [`StoreError::Failed`] no call succeeds until the store was opened again.
    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>>;

    /// Reads up to `limit` records of one sequence.
    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>>;

    /// The names of up to `limit` sequences, in order, after one: each that holds a record is among them. One
    /// whose last record was pruned, or that was forgotten, is not.
    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>>;

    /// Deletes the records of one sequence that a judge drops; answers how many. A crash in the middle leaves the
    /// rest for the next time.
    fn prune(&self, prefix: &[u8], judge: Judge) -> BoxFuture<'_, Result<usize, StoreError>>;

    /// Deletes all records of all sequences that start with `prefix`.
    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>>;
}
