//! Entries: their content and their stored form.
//!
//! A stored entry is one byte that names its form, then the form. Form 1 is a Protobuf message ([`wire`]) whose content
//! is compressed by zstd. Readers ignore fields that they do not know, so a field that an older program must not ignore
//! waits for a higher [`Level`].

pub(crate) mod wire;

use bytes::Bytes;
use periapt_host_api::{Digest, LEVEL, Level, Revision, StoreId, Timestamp};
use periapt_store::{Batch, NewRecord};
use uuid::Uuid;

use crate::{MAX_ENTRY_BYTES, Term};

/// The form that is written, and the newest that can be read.
const FORM: u8 = 1;

/// The identity of an entry. A writer that finds its own at a position knows that its append took effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EntryId(pub Uuid);

/// The words by which a leading controller makes itself known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Announcement {
    /// The member's name.
    pub member: String,
    /// The URL by which other controllers reach it.
    pub url: String,
    /// The highest level that its program knows.
    pub level: Level,
    /// The fingerprint of the keys that all controllers of the log share; none from a program that does not tell it.
    pub keys: Option<Digest>,
    /// The object store that has the blobs; empty: each controller has them; none: it is not told. It may change, so no
    /// entry of the log has it.
    pub blobs: Option<String>,
}

/// One entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The identity.
    pub id: EntryId,
    /// The term of the writer.
    pub term: Term,
    /// The writer's wall-clock time, never before that of the entry before.
    pub at: Timestamp,
    /// The level that a reader must know.
    pub level: Level,
    /// The digest of the stored form of the entry before; that of no bytes for the first.
    pub previous: Digest,
    /// The content.
    pub content: Content,
}

/// The content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// A leadership begins. The state stays what it was.
    Term(Announcement),
    /// The writes of one batch.
    Batch {
        /// The entities to put (`Some`) or to delete (`None`), by key.
        entities: Vec<(Vec<u8>, Option<Vec<u8>>)>,
        /// The records to append, in order.
        records: Vec<NewRecord>,
    },
}

/// The reason why an entry cannot be read, or does not follow the one before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The bytes are no entry.
    #[error("the entry at {0} cannot be read: {1}")]
    Malformed(Revision, String),
    /// A newer program wrote the entry, or what the store has applied.
    #[error(
        "the log has level {found} at position {position}, this program knows up to {known}: use a newer periapt"
    )]
    TooNew {
        /// The position.
        position: Revision,
        /// The level there.
        found: u32,
        /// The highest known level.
        known: u32,
    },
    /// The entry does not follow the one before it.
    #[error("the entry at {0} does not follow the one before it: {1}")]
    Broken(Revision, &'static str),
    /// The entry follows another one than the end that it is compared with: the log has another history.
    #[error("the entry at {0} of the log follows another one than this controller has applied")]
    OtherHistory(Revision),
    /// The entry is too large.
    #[error("an entry of {0} bytes is too large; at most {MAX_ENTRY_BYTES} are allowed")]
    TooLarge(usize),
}

impl Entry {
    /// Returns the stored form.
    ///
    /// # Errors
    /// [`EntryError::TooLarge`]
    pub fn encode(&self) -> Result<Bytes, EntryError> {
        wire::encode(self)
    }

    /// Reads a stored form. `position` is where it lies, for errors.
    ///
    /// # Errors
    /// [`EntryError::Malformed`] and [`EntryError::TooNew`].
    pub fn decode(position: Revision, bytes: &[u8]) -> Result<Self, EntryError> {
        wire::decode(position, bytes)
    }

    /// Returns the batch that brings a store to this entry's position.
    pub fn into_batch(self, position: Revision, head: &LogHead) -> Batch {
        let (entities, records) = match self.content {
            Content::Term(_) => (Vec::new(), Vec::new()),
            Content::Batch { entities, records } => (entities, records),
        };
        let expected = Revision(position.0.saturating_sub(1));
        Batch { expected, entities, records, note: Some(head.encode()) }
    }
}

/// The end of the log as far as a controller has applied it. A store keeps it with its head.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LogHead {
    /// The log.
    pub log: StoreId,
    /// The position of the last entry; 0 before the first.
    pub position: Revision,
    /// The term of the last entry.
    pub term: Term,
    /// The time of the last entry.
    pub at: Timestamp,
    /// The level of the last entry.
    pub level: Level,
    /// The digest of the last entry's stored form.
    pub digest: Digest,
}

impl LogHead {
    /// Returns the end of an empty log.
    pub fn empty(log: StoreId) -> Self {
        Self {
            log,
            position: Revision(0),
            term: Term(0),
            at: Timestamp::UNIX_EPOCH,
            level: Level::FIRST,
            digest: Digest::of(b""),
        }
    }

    /// Returns the end of a log that begins with a restored store: it has no entry, and its first position is the one
    /// after the store's.
    pub fn restored(log: StoreId, position: Revision, at: Timestamp, level: Level) -> Self {
        Self { position, at, level, digest: Digest::of(log.0.as_bytes()), ..Self::empty(log) }
    }

    /// Returns the end after one more entry.
    ///
    /// # Errors
    /// [`EntryError::Broken`] if the entry does not follow this end, [`EntryError::OtherHistory`] if it follows another one.
    pub fn after(&self, position: Revision, entry: &Entry, bytes: &[u8]) -> Result<Self, EntryError> {
        let broken = |why| Err(EntryError::Broken(position, why));
        if position.0 != self.position.0.saturating_add(1) {
            return broken("a position was left out");
        }
        if entry.previous != self.digest {
            return Err(EntryError::OtherHistory(position));
        }
        if entry.term < self.term {
            return broken("its term is lower");
        }
        if entry.level < self.level {
            return broken("its level is lower");
        }
        Ok(Self {
            log: self.log,
            position,
            term: entry.term,
            at: entry.at.max(self.at),
            level: entry.level,
            digest: Digest::of(bytes),
        })
    }

    /// Returns the form that a store keeps.
    pub fn encode(&self) -> Vec<u8> {
        wire::encode_head(self)
    }

    /// Reads the form that a store keeps.
    ///
    /// # Errors
    /// [`EntryError::Malformed`] and [`EntryError::TooNew`].
    pub fn decode(bytes: &[u8]) -> Result<Self, EntryError> {
        let head = wire::decode_head(bytes)?;
        head.check_level()?;
        Ok(head)
    }

    /// Refuses an end whose level this program does not know.
    ///
    /// # Errors
    /// [`EntryError::TooNew`]
    pub fn check_level(&self) -> Result<(), EntryError> {
        match self.level > LEVEL {
            true => Err(EntryError::TooNew { position: self.position, found: self.level.0, known: LEVEL.0 }),
            false => Ok(()),
        }
    }
}
