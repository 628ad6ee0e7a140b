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
    /// Another controller leads, and the log does not tell any more which entry it had at the position of the call.
    Unknown(Term),
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
            LogError::Trimmed(_) if self.in_doubt => AfterFailure::Unknown(self.term),
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

/// The newest entries that the log has, by their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LogWindow {
    /// The last position before those that stay for controllers which were away for a short while.
    pub spared: Revision,
    /// The last position before those that fit into the bound of the log; zero if all entries fit.
    pub bound: Revision,
}

/// The reason to trim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TrimReason {
    /// Nobody needs the entries.
    Unneeded,
    /// They do not fit into the bound of the log, even if a controller needs them.
    Bound,
}

impl TrimReason {
    /// Returns the reason's name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unneeded => "unneeded",
            Self::Bound => "bound",
        }
    }
}

/// A part of the log that may be trimmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trimmable {
    /// The last position of the part.
    pub through: Revision,
    /// The reason.
    pub reason: TrimReason,
}

/// Returns the part of the log that may be trimmed; none if there is none. `own` is durable on the leading controller's
/// disk, and `known` is the number of the other controllers, whether they report or not.
///
/// An entry may go when it is durable on the leading controller's disk and on that of another one, when no controller
/// that reports still needs it, and when it is before the newest entries that are spared. An entry that does not fit
/// into the bound may go once it is durable on the leading controller's disk: who needs it takes that controller's state.
pub fn trimmable(
    own: Revision,
    known: usize,
    reports: &[MemberProgress],
    window: LogWindow,
) -> Option<Trimmable> {
    let unneeded = unneeded(own, known, reports).map(|through| through.min(window.spared));
    let beyond = own.min(window.bound);
    match unneeded {
        Some(through) if through >= beyond => Some(Trimmable { through, reason: TrimReason::Unneeded }),
        _ if beyond > Revision(0) => Some(Trimmable { through: beyond, reason: TrimReason::Bound }),
        _ => None,
    }
}

/// Returns the last position that is durable on two disks and that no controller which reports still needs.
fn unneeded(own: Revision, known: usize, reports: &[MemberProgress]) -> Option<Revision> {
    let safe = match reports.iter().map(|report| report.durable).max() {
        Some(elsewhere) => own.min(elsewhere),
        None if known == 0 => own,
        // All others are away: the log is the only second copy.
        None => return None,
    };
    Some(reports.iter().map(|report| report.applied).min().unwrap_or(safe).min(safe))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole log may go as far as entries are spared, and all of it fits into the bound.
    const ROOMY: LogWindow = LogWindow { spared: Revision(100), bound: Revision(0) };

    fn report(applied: u64, durable: u64) -> MemberProgress {
        MemberProgress { applied: Revision(applied), durable: Revision(durable) }
    }

    fn through(
        own: u64,
        known: usize,
        reports: &[MemberProgress],
        window: LogWindow,
    ) -> Option<(u64, TrimReason)> {
        trimmable(Revision(own), known, reports, window).map(|part| (part.through.0, part.reason))
    }

    #[test]
    fn a_position_that_was_trimmed_tells_nothing_about_a_call_that_may_have_had_an_effect() {
        let trimmed = || LogError::Trimmed(Revision(9));
        let mut first = UnansweredCall::new(Term(3));
        assert_eq!(first.failed(trimmed()), AfterFailure::Deposed(Term(3)));
        let mut in_doubt = UnansweredCall::new(Term(3));
        in_doubt.failed(LogError::Unavailable("no answer".into()));
        assert_eq!(in_doubt.failed(trimmed()), AfterFailure::Unknown(Term(3)));
        assert_eq!(in_doubt.failed(LogError::Taken(Revision(9))), AfterFailure::Deposed(Term(3)));
    }

    #[test]
    fn what_two_disks_have_and_nobody_needs_goes_before_what_is_spared() {
        let unneeded = |position| Some((position, TrimReason::Unneeded));
        assert_eq!(through(9, 0, &[], ROOMY), unneeded(9), "a controller that knows no other one");
        assert_eq!(through(9, 2, &[], ROOMY), None, "the log is the only second copy");
        assert_eq!(through(9, 2, &[report(8, 7), report(9, 3)], ROOMY), unneeded(7));
        assert_eq!(through(9, 2, &[report(8, 7), report(5, 3)], ROOMY), unneeded(5), "one needs the rest");
        assert_eq!(through(4, 2, &[report(8, 7), report(9, 3)], ROOMY), unneeded(4));
        let spared = LogWindow { spared: Revision(2), bound: Revision(0) };
        assert_eq!(through(9, 1, &[report(9, 9)], spared), unneeded(2));
    }

    #[test]
    fn what_does_not_fit_into_the_bound_goes_once_it_is_on_the_leaders_disk_even_if_others_need_it() {
        let full = LogWindow { spared: Revision(100), bound: Revision(6) };
        let bound = |position| Some((position, TrimReason::Bound));
        assert_eq!(through(9, 2, &[], full), bound(6), "all others are away");
        assert_eq!(through(9, 2, &[report(1, 1)], full), bound(6), "a slow one holds nothing up");
        assert_eq!(through(9, 2, &[report(9, 9), report(2, 2)], full), bound(6));
        assert_eq!(through(4, 2, &[], full), bound(4), "not what the leader's disk lacks");
        assert_eq!(through(0, 2, &[], full), None);
        assert_eq!(through(9, 1, &[report(8, 8)], full), Some((8, TrimReason::Unneeded)));
        let spared = LogWindow { spared: Revision(3), bound: Revision(6) };
        assert_eq!(through(9, 1, &[report(9, 9)], spared), bound(6), "the bound is above what is spared");
    }
}
