//! The newest entries of the log by their sizes: which of them stay in the log, and which do not fit into it.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::{Revision, command::LogUse};
use periapt_log::LogWindow;

/// The bytes of the newest entries that stay in the log even if all controllers have them.
pub const KEPT_LOG_BYTES: u64 = 64 << 20;

/// The most bytes of entries that the log has, unless an operator says otherwise. etcd has room for 2 GiB by default.
/// The rest is for the keys and pages of the entries, and for what was trimmed and is not compacted yet.
pub const MAX_LOG_BYTES: u64 = 512 << 20;

/// The number of runs of entries that the window of the newest entries is made of.
const RUNS: u64 = 1024;

/// The bounds on the entries in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogBounds {
    /// The bytes of the newest entries that stay for controllers which were away for a short while.
    pub kept: u64,
    /// The most bytes of entries. Older ones are trimmed even if a controller still needs them.
    pub most: u64,
}

impl Default for LogBounds {
    fn default() -> Self {
        Self { kept: KEPT_LOG_BYTES, most: MAX_LOG_BYTES }
    }
}

/// The newest entries of the log, as far as this controller knows them. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecentEntries {
    bounds: LogBounds,
    entries: Arc<Mutex<Entries>>,
}

/// Some entries without a gap, in runs: the sizes of single entries would take more memory than a bounded log is worth.
#[derive(Debug, Default)]
struct Entries {
    runs: VecDeque<Run>,
    bytes: u64,
    /// The last position that is known to be trimmed.
    trimmed: Revision,
}

/// Entries that follow each other.
#[derive(Debug, Clone, Copy)]
struct Run {
    first: Revision,
    last: Revision,
    bytes: u64,
}

/// The sizes of entries that are older than those that a controller knows.
#[derive(Debug)]
pub(super) struct OlderEntries {
    /// The position before the first of them.
    pub(super) after: Revision,
    /// The position behind the last of them.
    pub(super) until: Revision,
    entries: Entries,
    run_bytes: u64,
}

impl Entries {
    fn push(&mut self, position: Revision, bytes: usize, run_bytes: u64) {
        let bytes = bytes as u64;
        if let Some(last) = self.runs.back().map(|run| run.last.0) {
            // A store that was opened again applies entries a second time.
            if position.0 <= last {
                return;
            }
            // A snapshot stands for those between.
            if position.0 > last.saturating_add(1) {
                self.runs.clear();
                self.bytes = 0;
            }
        }
        self.bytes = self.bytes.saturating_add(bytes);
        match self.runs.back_mut() {
            Some(run) if run.bytes.saturating_add(bytes) <= run_bytes => {
                run.last = position;
                run.bytes += bytes;
            }
            _ => self.runs.push_back(Run { first: position, last: position, bytes }),
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(run) = self.runs.pop_front() {
            self.bytes = self.bytes.saturating_sub(run.bytes);
        }
    }

    fn first(&self) -> Option<Revision> {
        self.runs.front().map(|run| run.first)
    }

    /// Returns the last position before the newest entries that have at least so many bytes, and are one at least.
    fn before_at_least(&self, bytes: u64) -> Revision {
        let mut sum = 0_u64;
        let fills = |run: &&Run| {
            sum = sum.saturating_add(run.bytes);
            sum >= bytes
        };
        let oldest = self.runs.iter().rev().find(fills).or(self.runs.front());
        Revision(oldest.map_or(0, |run| run.first.0.saturating_sub(1)))
    }

    /// Returns the last position before the newest entries that have at most so many bytes, and are one at least; zero
    /// if all have.
    fn before_at_most(&self, bytes: u64) -> Revision {
        let mut sum = 0_u64;
        let exceeds = |run: &&Run| {
            sum = sum.saturating_add(run.bytes);
            sum > bytes
        };
        let beyond = self.runs.iter().rev().find(exceeds).map(|run| run.last);
        let newest = self.runs.back().map_or(0, |run| run.first.0.saturating_sub(1));
        Revision(beyond.map_or(0, |last| last.0.min(newest)))
    }
}

impl RecentEntries {
    pub(crate) fn new(bounds: LogBounds) -> Self {
        Self { bounds, entries: Arc::default() }
    }

    /// Returns the most bytes of a run of entries.
    fn run_bytes(&self) -> u64 {
        self.bounds.kept / RUNS
    }

    /// Notes the entry that follows. What is beyond twice the bound is forgotten: it does not fit, whatever it has.
    pub(crate) fn note(&self, position: Revision, bytes: usize) {
        let mut entries = self.entries.lock();
        entries.push(position, bytes, self.run_bytes());
        let most = self.bounds.most.max(self.bounds.kept).saturating_mul(2);
        while entries.runs.len() > 1
            && let Some(oldest) = entries.runs.front().map(|run| run.bytes)
            && entries.bytes.saturating_sub(oldest) >= most
        {
            entries.forget_oldest();
        }
    }

    /// Notes that the log has no entries up to a position any more.
    pub(super) fn note_trimmed(&self, through: Revision) {
        let mut entries = self.entries.lock();
        entries.trimmed = entries.trimmed.max(through);
        while entries.runs.front().is_some_and(|run| run.last <= through) {
            entries.forget_oldest();
        }
    }

    /// Returns the older entries of the log whose sizes this controller must still read; none if it knows all that fit.
    pub(super) fn unknown(&self) -> Option<OlderEntries> {
        let entries = self.entries.lock();
        let (after, until) = (entries.trimmed, entries.first()?);
        let is_full = entries.bytes > self.bounds.most;
        let is_known = is_full || until.0 <= after.0.saturating_add(1);
        let run_bytes = self.run_bytes();
        (!is_known).then(|| OlderEntries { after, until, entries: Entries::default(), run_bytes })
    }

    /// Takes the sizes of older entries, if they are followed by those that this controller knows.
    pub(super) fn precede(&self, older: OlderEntries) {
        let mut entries = self.entries.lock();
        let follows = older.entries.runs.back().map(|run| Revision(run.last.0.saturating_add(1)));
        if follows.is_some() && follows == entries.first() {
            entries.bytes = entries.bytes.saturating_add(older.entries.bytes);
            for run in older.entries.runs.into_iter().rev() {
                entries.runs.push_front(run);
            }
        }
    }

    /// Returns the newest entries that stay.
    pub(super) fn window(&self) -> LogWindow {
        let entries = self.entries.lock();
        LogWindow {
            spared: entries.before_at_least(self.bounds.kept),
            bound: entries.before_at_most(self.bounds.most),
        }
    }

    /// Returns the entries that the log has, as the controller that leads knows them.
    pub(super) fn usage(&self) -> LogUse {
        let entries = self.entries.lock();
        let last = entries.runs.back().map_or(0, |run| run.last.0);
        LogUse {
            entries: last.saturating_sub(entries.trimmed.0),
            bytes: entries.bytes,
            bound: self.bounds.most,
        }
    }

    /// Returns true if a controller that has applied a position needs an entry which was trimmed.
    pub(super) fn has_lost(&self, applied: Revision) -> bool {
        applied < self.entries.lock().trimmed
    }
}

impl OlderEntries {
    /// Notes the entry that follows.
    pub(super) fn note(&mut self, position: Revision, bytes: usize) {
        self.after = position;
        self.entries.push(position, bytes, self.run_bytes);
    }

    /// Returns true if the sizes of all are known.
    pub(super) fn is_complete(&self) -> bool {
        self.after.0.saturating_add(1) >= self.until.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(kept: u64, most: u64) -> RecentEntries {
        RecentEntries::new(LogBounds { kept, most })
    }

    fn note(recent: &RecentEntries, positions: std::ops::RangeInclusive<u64>, bytes: usize) {
        positions.for_each(|position| recent.note(Revision(position), bytes));
    }

    fn window(recent: &RecentEntries) -> (u64, u64) {
        let LogWindow { spared, bound } = recent.window();
        (spared.0, bound.0)
    }

    #[test]
    fn the_newest_entries_stay_up_to_their_bytes() {
        let recent = of(100, 10_000);
        assert_eq!(window(&recent), (0, 0));
        note(&recent, 5..=7, 40);
        assert_eq!(window(&recent), (4, 0), "two would be less than the window");
        note(&recent, 8..=8, 40);
        assert_eq!(window(&recent), (5, 0));
        note(&recent, 9..=9, 1_000);
        assert_eq!(window(&recent), (8, 0));
        let none = of(0, 10_000);
        note(&none, 3..=4, 10);
        assert_eq!(window(&none), (3, 0), "one stays");
    }

    #[test]
    fn entries_that_do_not_fit_into_the_bound_are_before_it() {
        let recent = of(0, 100);
        note(&recent, 1..=2, 50);
        assert_eq!(window(&recent).1, 0, "both fit");
        note(&recent, 3..=3, 1);
        assert_eq!(window(&recent).1, 1);
        note(&recent, 4..=4, 1_000);
        assert_eq!(window(&recent).1, 3, "the newest one stays, however large it is");
        note(&recent, 5..=5, 40);
        assert_eq!(window(&recent).1, 4);
    }

    #[test]
    fn what_was_trimmed_or_lies_far_back_is_counted_no_more() {
        let recent = of(0, 100);
        note(&recent, 1..=4, 25);
        recent.note_trimmed(Revision(2));
        assert_eq!(recent.usage(), LogUse { entries: 2, bytes: 50, bound: 100 });
        assert!(recent.has_lost(Revision(1)) && !recent.has_lost(Revision(2)));
        note(&recent, 5..=1_000, 25);
        assert_eq!(recent.usage(), LogUse { entries: 998, bytes: 200, bound: 100 });
        assert_eq!(window(&recent).1, 996);
        assert!(recent.unknown().is_none(), "what is not known does not fit");
    }

    #[test]
    fn entries_of_a_second_reading_count_once_and_those_before_a_snapshot_do_not() {
        let recent = of(0, 100);
        note(&recent, 1..=4, 10);
        note(&recent, 3..=5, 10);
        assert_eq!(recent.usage().bytes, 50);
        note(&recent, 9..=9, 10);
        assert_eq!((recent.usage().bytes, window(&recent).0), (10, 8));
    }

    #[test]
    fn the_sizes_of_older_entries_are_asked_for_once() {
        let recent = of(0, 100);
        note(&recent, 7..=8, 10);
        recent.note_trimmed(Revision(4));
        let mut older = recent.unknown().unwrap();
        assert_eq!((older.after.0, older.until.0), (4, 7));
        older.note(Revision(5), 60);
        assert!(!older.is_complete());
        older.note(Revision(6), 25);
        assert!(older.is_complete());
        // More comes meanwhile.
        note(&recent, 9..=9, 10);
        recent.precede(older);
        assert_eq!(recent.usage(), LogUse { entries: 5, bytes: 115, bound: 100 });
        assert_eq!(window(&recent).1, 5);
        assert!(recent.unknown().is_none());
    }

    #[test]
    fn runs_of_entries_are_few_and_leave_the_window_large_enough() {
        let recent = of(1 << 20, 4 << 20);
        note(&recent, 1..=100_000, 100);
        assert!(recent.entries.lock().runs.len() <= 10_000);
        let (spared, bound) = window(&recent);
        assert!((100_000 - spared) * 100 >= 1 << 20);
        assert!((100_000 - bound) * 100 <= 4 << 20);
        assert!((100_000 - bound) * 100 >= (4 << 20) - 2048, "no more is cut off than must be");
    }
}
