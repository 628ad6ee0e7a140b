//! The replicated log of a set of controllers (`docs/design/replication.md`).
//!
//! Each [`Entry`] holds one batch of the writer. Its position is the revision of the state after it. Every controller
//! applies the entries in order to its own store. One controller at a time *leads*: it holds a [`Term`], and only it
//! appends. A [`Log`] handles bytes; [`Entry`] gives them a meaning.
//!
//! [`MemoryLog`] is here, etcd in a crate of its own; every implementation passes one suite (the feature `suite`).

mod entry;
mod error;
mod leadership;
mod memory;
mod snapshot;
mod state;
mod step;
#[cfg(feature = "suite")]
pub mod suite;

use bytes::Bytes;
use futures_util::{future::BoxFuture, stream::BoxStream};
use periapt_host_api::{Revision, StoreId};

pub use entry::{Announcement, Content, Entry, EntryError, EntryId, LogHead};
pub use error::LogError;
pub use leadership::{Leadership, LogLeader};
pub use memory::{MemoryLog, MemoryLogMember};
pub use snapshot::{SnapshotError, SnapshotPart, SnapshotReader};
pub use state::LogState;
pub use step::{
    AfterFailure, LogWindow, MemberProgress, NextEntry, TrimReason, Trimmable, UnansweredCall, trimmable,
};

/// The time after which the leadership of a controller that does not renew it ends. A shorter time would take the
/// leadership from a controller that a busy machine pauses.
pub const LEADERSHIP_TTL: std::time::Duration = std::time::Duration::from_secs(2);

/// The largest entry in its stored form, in bytes. A batch holds one MiB of requests, and what they write is of that
/// order; the bound keeps a damaged length from taking all memory.
pub const MAX_ENTRY_BYTES: usize = 64 << 20;

/// The number of a leadership. Each leadership has a higher one than all before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Term(pub u64);

impl std::fmt::Display for Term {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// An entry in its stored form, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// The position: the revision of the state after the entry.
    pub position: Revision,
    /// The stored form.
    pub bytes: Bytes,
}

/// The replicated log of one shard, as one controller uses it.
///
/// Positions begin at 1 and have no gaps. What is appended is durable, and never changes.
pub trait Log: Send + Sync + 'static {
    /// Returns the log's identity. Each store that is fed from the log has the same.
    fn id(&self) -> StoreId;

    /// Appends an entry at a position, which must be the one after the last. The same entry at the same position again
    /// succeeds, even if another controller leads by then: so a caller that does not know what became of an append
    /// repeats it.
    ///
    /// # Errors
    /// [`LogError::Deposed`] if the term is over: then the log does not have the entry, and never will.
    /// [`LogError::Taken`] if another entry has the position. [`LogError::Trimmed`] if the position was trimmed: it is
    /// unknown which entry was there. After [`LogError::Unavailable`] it is unknown if the log
    /// has the entry.
    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>>;

    /// Returns once it is sure that the term was not over when the call began.
    ///
    /// # Errors
    /// [`LogError::Deposed`] if the term is over.
    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>>;

    /// Returns the last position, zero if there is none. Each entry that was appended before the call counts.
    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>>;

    /// Reads entries after a position, in order, as many as fit into `max_bytes`, but at least one if there is one. It
    /// returns all entries that were appended before the call, if they fit.
    ///
    /// # Errors
    /// [`LogError::Trimmed`] if the first of them is not in the log any more.
    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>>;

    /// Returns all entries after a position, in order and without gaps, as they are appended. The stream ends with its
    /// first error, and may lag behind.
    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>>;

    /// Deletes entries up to and including a position. The caller's disk has the state after it.
    ///
    /// # Errors
    /// [`LogError::Deposed`] if the term is over.
    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>>;

    /// Waits until no controller leads, and takes the leadership, with a term that is higher than all before it. The
    /// announcement is shown to the others. Dropping the future withdraws the candidate.
    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>>;

    /// Returns the controller that leads now, and each change of it. The stream ends with its first error, and may lag
    /// behind.
    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>>;
}
