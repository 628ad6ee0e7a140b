//! The growth of each sequence of records since its last pruning. A sequence that exceeds its bound is pruned at
//! once. A log that grows even faster loses lines.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use periapt_model::RecordKind;
use periapt_store::{NewRecord, key};
use tokio::sync::Notify;

use super::retention::MAX_LOG_BYTES;
use crate::metrics::metrics;

/// The bytes by which a unit's journal grows before it is pruned: about four times what is kept.
const JOURNAL_BYTES: u64 = 64 << 20;
/// The bytes by which a status history grows before it is pruned: about four times what is kept.
const STATUS_BYTES: u64 = 16 << 20;
/// The multiple of its bound at which a log loses lines.
const DROPPED_AFTER: u64 = 2;

/// The growth of all sequences. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct SequenceGrowth(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    appended: Mutex<BTreeMap<Vec<u8>, u64>>,
    grown: Notify,
}

impl SequenceGrowth {
    /// Counts records before they are written, and removes log lines that come too fast.
    pub(crate) fn admit(&self, records: &mut Vec<NewRecord>) {
        let before = records.len();
        self.count(|count| records.retain(|record| count.add(record, Some(DROPPED_AFTER))));
        if records.len() < before {
            let lines = before - records.len();
            metrics().log_lines_dropped.add(&[], lines as u64);
            tracing::warn!(lines, "log lines are dropped: they come faster than the oldest can be pruned");
        }
    }

    /// Counts records of an entry that another controller appended. All are written: each has the same number with all
    /// controllers.
    pub(crate) fn note(&self, records: &[NewRecord]) {
        self.count(|count| {
            for record in records {
                count.add(record, None);
            }
        });
    }

    fn count(&self, counted: impl FnOnce(&mut Count<'_>)) {
        let mut count = Count { appended: self.lock(), has_grown: false };
        counted(&mut count);
        if count.has_grown {
            self.0.grown.notify_one();
        }
    }

    /// Waits until a sequence has exceeded its bound.
    pub(super) async fn grown(&self) {
        self.0.grown.notified().await;
    }

    /// Returns the sequences that have exceeded their bounds.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let past = |name: &[u8], bytes: u64| bound_of(name).is_some_and(|(_, bound)| bytes > bound);
        let appended = self.lock();
        appended.iter().filter(|(name, bytes)| past(name, **bytes)).map(|(name, _)| name.clone()).collect()
    }

    /// Resets the growth of a sequence that is pruned.
    pub(super) fn pruned(&self, name: &[u8]) {
        self.lock().remove(name);
    }

    /// Forgets the growth of all sequences whose names begin so: their records are deleted.
    pub(super) fn forgotten(&self, prefix: &[u8]) {
        self.lock().retain(|name, _| !name.starts_with(prefix));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, u64>> {
        // Each call leaves the counts consistent.
        self.0.appended.lock()
    }
}

/// A count of records that are about to be written.
struct Count<'a> {
    appended: MutexGuard<'a, BTreeMap<Vec<u8>, u64>>,
    /// True if a sequence has exceeded its bound.
    has_grown: bool,
}

impl Count<'_> {
    /// Counts a record. Returns false for a line of a log that has grown by more than so many times its bound; such a line
    /// is not counted.
    fn add(&mut self, record: &NewRecord, most: Option<u64>) -> bool {
        let Some((kind, bound)) = bound_of(&record.prefix) else { return true };
        let bytes = self.appended.get(&record.prefix).copied().unwrap_or_default();
        if kind == RecordKind::Log && most.is_some_and(|most| bytes > bound.saturating_mul(most)) {
            return false;
        }
        let bytes = bytes.saturating_add(record.body.len() as u64);
        self.has_grown |= bytes > bound;
        self.appended.insert(record.prefix.clone(), bytes);
        true
    }
}

/// Returns the bound on a sequence's growth, or none for tasks, which are bounded by their own limits.
fn bound_of(name: &[u8]) -> Option<(RecordKind, u64)> {
    let (_, kind) = key::parse_records(name)?;
    let bound = match kind {
        RecordKind::Log => MAX_LOG_BYTES,
        RecordKind::Journal => JOURNAL_BYTES,
        RecordKind::Status => STATUS_BYTES,
        RecordKind::Task | RecordKind::Audit => return None,
    };
    Some((kind, bound))
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{ModelUuid, Timestamp};

    use super::*;

    fn records(kind: RecordKind, count: usize, bytes: usize) -> Vec<NewRecord> {
        let prefix = key::record_prefix(&ModelUuid(uuid::Uuid::nil()), kind, "a/0");
        let record = NewRecord { prefix, at: Timestamp::UNIX_EPOCH, body: vec![b'x'; bytes] };
        vec![record; count]
    }

    fn admitted(growth: &SequenceGrowth, kind: RecordKind, count: usize) -> usize {
        (0..count)
            .map(|_| {
                let mut records = records(kind, 1, 16 << 20);
                growth.admit(&mut records);
                records.len()
            })
            .sum()
    }

    #[test]
    fn a_log_that_grows_faster_than_it_is_pruned_has_no_more_lines_taken() {
        let growth = SequenceGrowth::default();
        let bound = usize::try_from(MAX_LOG_BYTES >> 24).unwrap();
        assert_eq!(admitted(&growth, RecordKind::Log, bound), bound);
        assert!(growth.names().is_empty());
        // Twice the bound, plus the line that exceeds it.
        assert_eq!(admitted(&growth, RecordKind::Log, 3 * bound), bound + 1);
        let names = growth.names();
        assert_eq!(names.len(), 1, "it is pruned at once");
        growth.pruned(&names[0]);
        assert_eq!(admitted(&growth, RecordKind::Log, 1), 1);
    }

    #[test]
    fn nothing_is_held_of_a_model_whose_records_are_deleted() {
        let growth = SequenceGrowth::default();
        growth.note(&records(RecordKind::Log, 1, 1));
        growth.forgotten(&key::records_of_model(&ModelUuid(uuid::Uuid::max())));
        assert_eq!(growth.lock().len(), 1, "another model");
        growth.forgotten(&key::records_of_model(&ModelUuid(uuid::Uuid::nil())));
        assert_eq!(growth.lock().len(), 0);
    }

    #[test]
    fn records_of_another_controller_are_counted_and_none_is_dropped() {
        let growth = SequenceGrowth::default();
        let lines = records(RecordKind::Log, 1, 16 << 20);
        let bound = MAX_LOG_BYTES >> 24;
        for _ in 0..3 * bound {
            growth.note(&lines);
        }
        assert_eq!(growth.names(), [lines[0].prefix.clone()], "it is pruned at once");
        assert_eq!(growth.lock()[&lines[0].prefix], 3 * MAX_LOG_BYTES, "each is written and counted");
        assert_eq!(admitted(&growth, RecordKind::Log, 1), 0, "once this controller leads, lines are dropped");
    }

    #[test]
    fn nothing_but_log_lines_is_dropped() {
        for kind in [RecordKind::Journal, RecordKind::Status, RecordKind::Task] {
            let growth = SequenceGrowth::default();
            assert_eq!(admitted(&growth, kind, 100), 100);
            assert_eq!(growth.names().is_empty(), kind == RecordKind::Task, "{kind:?}");
        }
    }
}
