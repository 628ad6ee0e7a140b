//! How much was appended to each sequence of records since it was pruned: what grows past its bound between two rounds
//! is pruned at once, and a log that grows faster than that has no more of its lines taken.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use periapt_model::RecordKind;
use periapt_store::{NewRecord, key};
use tokio::sync::Notify;

use super::retention::MAX_LOG_BYTES;

/// What the journal of a unit grows by before it is pruned: some four times what is kept of it.
const JOURNAL_BYTES: u64 = 64 << 20;
/// What a status history grows by: some four times what its lines may take.
const STATUS_BYTES: u64 = 16 << 20;
/// How many times its bound a log grows by before lines are dropped.
const DROPPED_AFTER: u64 = 2;

/// What all sequences grew by. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Growth(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    appended: Mutex<BTreeMap<Vec<u8>, u64>>,
    grown: Notify,
}

impl Growth {
    /// Counts records that are to be written, and takes those away that come too fast.
    pub(crate) fn admit(&self, records: &mut Vec<NewRecord>) {
        let mut appended = self.lock();
        let (before, mut grown) = (records.len(), false);
        records.retain(|record| {
            let Some((kind, bound)) = bound_of(&record.prefix) else { return true };
            let bytes = appended.get(&record.prefix).copied().unwrap_or_default();
            if kind == RecordKind::Log && bytes > bound.saturating_mul(DROPPED_AFTER) {
                return false;
            }
            let bytes = bytes.saturating_add(record.body.len() as u64);
            grown |= bytes > bound;
            appended.insert(record.prefix.clone(), bytes);
            true
        });
        if records.len() < before {
            let lines = before - records.len();
            tracing::warn!(lines, "log lines are dropped: they come faster than the oldest can be pruned");
        }
        if grown {
            self.0.grown.notify_one();
        }
    }

    /// Waits until a sequence has grown past its bound.
    pub(super) async fn grown(&self) {
        self.0.grown.notified().await;
    }

    /// The sequences that have grown past their bounds.
    pub(super) fn names(&self) -> Vec<Vec<u8>> {
        let past = |name: &[u8], bytes: u64| bound_of(name).is_some_and(|(_, bound)| bytes > bound);
        let appended = self.lock();
        appended.iter().filter(|(name, bytes)| past(name, **bytes)).map(|(name, _)| name.clone()).collect()
    }

    /// A sequence was pruned.
    pub(super) fn pruned(&self, name: &[u8]) {
        self.lock().remove(name);
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Vec<u8>, u64>> {
        // Each call leaves the counts whole.
        self.0.appended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sequence may grow by; none: it is bounded otherwise, a task's by the task.
fn bound_of(name: &[u8]) -> Option<(RecordKind, u64)> {
    let (_, kind) = key::parse_records(name)?;
    let bound = match kind {
        RecordKind::Log => MAX_LOG_BYTES,
        RecordKind::Journal => JOURNAL_BYTES,
        RecordKind::Status => STATUS_BYTES,
        RecordKind::Task => return None,
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

    fn admitted(growth: &Growth, kind: RecordKind, count: usize) -> usize {
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
        let growth = Growth::default();
        let bound = usize::try_from(MAX_LOG_BYTES >> 24).unwrap();
        assert_eq!(admitted(&growth, RecordKind::Log, bound), bound);
        assert!(growth.names().is_empty());
        // Twice the bound, and the line that goes past it.
        assert_eq!(admitted(&growth, RecordKind::Log, 3 * bound), bound + 1);
        let names = growth.names();
        assert_eq!(names.len(), 1, "it is pruned at once");
        growth.pruned(&names[0]);
        assert_eq!(admitted(&growth, RecordKind::Log, 1), 1);
    }

    #[test]
    fn nothing_but_log_lines_is_dropped() {
        for kind in [RecordKind::Journal, RecordKind::Status, RecordKind::Task] {
            let growth = Growth::default();
            assert_eq!(admitted(&growth, kind, 100), 100);
            assert_eq!(growth.names().is_empty(), kind == RecordKind::Task, "{kind:?}");
        }
    }
}
