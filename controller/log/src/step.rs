//! The steps of a controller that writes the log, without the log: what it appends, what it makes of an answer, and what it
//! may trim. The controller and the exhaustive models of the protocol (`tests/protocol`) call the same.

use bytes::Bytes;
use periapt_host_api::{Level, Revision, Timestamp};

use crate::{Content, Entry, EntryError, EntryId, LogError, LogHead, Term};

/// An entry that follows an end of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NextEntry {
    /// The entry.
    pub entry: Entry,
    /// Its position.
    pub position: Revision,
    /// Its stored form.
    pub bytes: Bytes,
    /// The end of the log after it.
    pub head: LogHead,
}

impl LogHead {
    /// Returns true if a writer of a later term has appended up to this end: a controller of this term that was paused while
    /// it caught up leads no more.
    pub fn is_past(&self, term: Term) -> bool {
        self.term > term
    }

    /// Makes the entry that a writer appends after this end. Neither time nor level falls.
    ///
    /// # Errors
    /// [`EntryError`]
    pub fn next_entry(
        &self,
        (id, term): (EntryId, Term),
        (now, level): (Timestamp, Level),
        content: Content,
    ) -> Result<NextEntry, EntryError> {
        let position = Revision(self.position.0.saturating_add(1));
        let (at, level, previous) = (now.max(self.at), level.max(self.level), self.digest);
        let entry = Entry { id, term, at, level, previous, content };
        let bytes = entry.encode()?;
        let head = self.after(position, &entry, &bytes)?;
        Ok(NextEntry { entry, position, bytes, head })
    }
}

/// A call of a writer that the log has not answered. It is repeated until its outcome is known; a repeated call has no
/// further effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnansweredCall {
    term: Term,
    /// True if an earlier attempt may have had an effect. A refusal says nothing about it.
    in_doubt: bool,
}

/// The step of a writer after a call failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterFailure {
    /// Another controller leads. The call had no effect, and never will have one.
    Deposed(Term),
    /// The log refuses the call, which had no effect.
    Refused(LogError),
    /// The outcome is unknown: the same call again.
    Repeat(LogError),
}

impl UnansweredCall {
    /// Begins a call in a term.
    pub fn new(term: Term) -> Self {
        Self { term, in_doubt: false }
    }

    /// Takes the failure of an attempt.
    pub fn failed(&mut self, failure: LogError) -> AfterFailure {
        match failure {
            LogError::Deposed(term) => AfterFailure::Deposed(term),
            // Only the writer of a later term appends where this one would.
            LogError::Taken(_) | LogError::Trimmed(_) => AfterFailure::Deposed(self.term),
            LogError::Unavailable(_) => {
                self.in_doubt = true;
                AfterFailure::Repeat(failure)
            }
            LogError::Refused(_) if self.in_doubt => AfterFailure::Repeat(failure),
            LogError::Refused(_) | LogError::Foreign(_) | LogError::Damaged(_) => {
                AfterFailure::Refused(failure)
            }
        }
    }
}

/// The part of the log that another controller has, as it reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct MemberProgress {
    /// The last position that it has applied.
    pub applied: Revision,
    /// The last position whose effect is durable on its disk.
    pub durable: Revision,
}

/// Returns the last position that the log need not have any more: it is durable on the leading controller's disk (`own`)
/// and on that of another one, and no controller that reports still needs it. `known` is the number of the other
/// controllers, whether they report or not.
pub fn trimmable(own: Revision, known: usize, reports: &[MemberProgress]) -> Option<Revision> {
    let safe = match reports.iter().map(|report| report.durable).max() {
        Some(elsewhere) => own.min(elsewhere),
        None if known == 0 => own,
        // All others are away: the log is the only second copy.
        None => return None,
    };
    Some(reports.iter().map(|report| report.applied).min().unwrap_or(safe).min(safe))
}
