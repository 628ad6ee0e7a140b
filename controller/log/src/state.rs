//! The content of a log and its rules, as a value without a clock. The log in memory keeps one, and the exhaustive models of
//! the protocol (`tests/protocol`) explore it.

use std::collections::BTreeMap;

use bytes::Bytes;
use periapt_host_api::Revision;

use crate::{LogError, StoredEntry, Term};

/// The content of a log: its entries, its end, and the term that may append.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct LogState {
    entries: BTreeMap<u64, Bytes>,
    /// The last position.
    end: u64,
    term: u64,
}

impl LogState {
    /// Returns a log without entries, which begins after a position.
    pub fn restored(position: Revision) -> Self {
        Self { end: position.0, ..Self::default() }
    }

    /// Returns the last position; 0 before the first entry.
    pub fn end(&self) -> Revision {
        Revision(self.end)
    }

    /// Returns the highest term; 0 before the first.
    pub fn term(&self) -> Term {
        Term(self.term)
    }

    /// Returns the last position that was trimmed.
    pub fn trimmed(&self) -> Revision {
        Revision(self.entries.first_key_value().map_or(self.end, |(position, _)| position.saturating_sub(1)))
    }

    /// Returns the entry at a position, if the log has it.
    pub fn entry(&self, position: Revision) -> Option<&Bytes> {
        self.entries.get(&position.0)
    }

    /// Begins the next term, which ends all before it.
    pub fn begin_term(&mut self) -> Term {
        self.term = self.term.saturating_add(1);
        Term(self.term)
    }

    /// Appends an entry, as [`Log::append`](crate::Log::append) does.
    ///
    /// # Errors
    /// The errors of [`Log::append`](crate::Log::append), but for [`LogError::Unavailable`].
    pub fn append(&mut self, term: Term, position: Revision, entry: Bytes) -> Result<(), LogError> {
        if let Some(present) = self.entries.get(&position.0) {
            let same = *present == entry;
            return if same { Ok(()) } else { self.confirm(term).and(Err(LogError::Taken(position))) };
        }
        let trimmed = self.trimmed();
        if (1..=trimmed.0).contains(&position.0) {
            return Err(LogError::Trimmed(trimmed));
        }
        self.confirm(term)?;
        if position.0 != self.end.saturating_add(1) {
            return Err(LogError::Taken(position));
        }
        self.end = position.0;
        self.entries.insert(position.0, entry);
        Ok(())
    }

    /// Checks that a term is not over.
    ///
    /// # Errors
    /// [`LogError::Deposed`]
    pub fn confirm(&self, term: Term) -> Result<(), LogError> {
        if self.term == term.0 { Ok(()) } else { Err(LogError::Deposed(term)) }
    }

    /// Reads entries, as [`Log::read`](crate::Log::read) does.
    ///
    /// # Errors
    /// [`LogError::Trimmed`]
    pub fn read(&self, after: Revision, max_bytes: usize) -> Result<Vec<StoredEntry>, LogError> {
        let trimmed = self.trimmed();
        if after < trimmed {
            return Err(LogError::Trimmed(trimmed));
        }
        Ok(self.after(after, max_bytes))
    }

    /// Returns the entries after a position that the log still has, as many as fit, but at least one.
    pub(crate) fn after(&self, after: Revision, max_bytes: usize) -> Vec<StoredEntry> {
        let (mut bytes, mut found) = (0_usize, Vec::new());
        for (position, entry) in self.entries.range(after.0.saturating_add(1)..) {
            bytes = bytes.saturating_add(entry.len());
            if !found.is_empty() && bytes > max_bytes {
                break;
            }
            found.push(StoredEntry { position: Revision(*position), bytes: entry.clone() });
        }
        found
    }

    /// Deletes entries up to and including a position.
    ///
    /// # Errors
    /// [`LogError::Deposed`]
    pub fn trim(&mut self, term: Term, through: Revision) -> Result<(), LogError> {
        self.confirm(term)?;
        self.entries = self.entries.split_off(&through.0.min(self.end).saturating_add(1));
        Ok(())
    }
}
