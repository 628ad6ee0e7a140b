//! The retention of records.

use periapt_host_api::{Timestamp, journal::HookOutcome, settings::ModelConfig};
use periapt_model::RecordBody;
use periapt_store::{Record, Retention, RetentionPolicy, codec};

const DAY: i64 = 24 * 3600;

/// The age up to which log lines and journals are kept, in seconds. The model's configuration sets that of status
/// history.
const MAX_AGE: i64 = 14 * DAY;
/// The most log lines of one model.
const MAX_LOG_LINES: usize = 1_000_000;
/// The most bytes of one model's log lines. A charm chooses the length of a line.
pub(super) const MAX_LOG_BYTES: u64 = 256 << 20;
/// The age up to which the audit log is kept, in seconds: two years.
const AUDIT_AGE: i64 = 731 * DAY;
/// The most entries of the audit log.
const MAX_AUDIT_ENTRIES: usize = 100_000;
/// The most bytes of the audit log. A user chooses no more of an entry than the names in it.
const MAX_AUDIT_BYTES: u64 = 64 << 20;
/// The most entries of one entity's status history.
const MAX_STATUSES: usize = 1_000;
/// The number of each unit's newest hooks that are kept (`docs/design/sandbox.md`).
const MAX_HOOKS: usize = 50;
/// The age up to which failed hooks are kept besides, in seconds.
const FAILED_AGE: i64 = 7 * DAY;
/// The most bytes of failed hooks. Without it, a hook that fails at each retry with a full journal would take half a
/// GiB a week for each unit.
const MAX_FAILED_BYTES: u64 = 16 << 20;

/// Returns the retention of one model's log.
pub(super) fn log(now: Timestamp) -> RetentionPolicy {
    Box::new(newest(MAX_LOG_LINES, MAX_LOG_BYTES, seconds_before(now, MAX_AGE)))
}

/// Returns the retention of the audit log.
pub(super) fn audit(now: Timestamp) -> RetentionPolicy {
    Box::new(newest(MAX_AUDIT_ENTRIES, MAX_AUDIT_BYTES, seconds_before(now, AUDIT_AGE)))
}

/// Returns the retention of one unit's journal: the newest hooks, and those that failed lately.
pub(super) fn journal(now: Timestamp) -> RetentionPolicy {
    let mut newest_hooks = newest(MAX_HOOKS, u64::MAX, seconds_before(now, MAX_AGE));
    let mut failed = newest(usize::MAX, MAX_FAILED_BYTES, seconds_before(now, FAILED_AGE));
    Box::new(move |record| match newest_hooks(record) {
        Retention::Drop if is_failure(record) => failed(record),
        retention => retention,
    })
}

/// Returns the retention of one of a model's status histories. The model's bytes are divided evenly among them, so a
/// unit with many changes costs no other unit its history. The newest entry is the current status, and is kept
/// whatever its size.
pub(super) fn history(now: Timestamp, config: &ModelConfig, histories: u64) -> RetentionPolicy {
    let share = (u64::from(config.max_status_history_size) << 20) / histories.max(1);
    let oldest = seconds_before(now, i64::from(config.max_status_history_age));
    let (mut lines, mut first) = (newest(MAX_STATUSES, share, oldest), true);
    Box::new(move |record| {
        let retention = lines(record);
        match std::mem::take(&mut first) && record.at >= oldest {
            true => Retention::Keep,
            false => retention,
        }
    })
}

/// Keeps the newest records, up to a count and a number of bytes, and none that is too old.
fn newest(count: usize, bytes: u64, oldest: Timestamp) -> impl FnMut(&Record) -> Retention + Send {
    let (mut count, mut bytes) = (count, bytes);
    move |record| {
        let (counted, fits) = (count.checked_sub(1), bytes.checked_sub(record.body.len() as u64));
        // The first record that does not fit ends the list: no older and smaller one is kept.
        (count, bytes) = (counted.unwrap_or(0), fits.unwrap_or(0));
        match counted.and(fits) {
            Some(_) if record.at >= oldest => Retention::Keep,
            _ => Retention::Drop,
        }
    }
}

fn is_failure(record: &Record) -> bool {
    match codec::body(record) {
        Ok(RecordBody::Journal(hook)) => matches!(hook.outcome, HookOutcome::Failed { .. }),
        _ => false,
    }
}

fn seconds_before(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(now.as_second().saturating_sub(seconds)).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        Digest, ModelUuid, Revision,
        event::Event,
        journal::{HookCosts, JournalRecord, RecordedCalls},
    };
    use periapt_model::{Changes, RecordAppend};
    use periapt_store::RecordPosition;

    use super::*;

    const NOW: i64 = 100 * DAY;

    fn now() -> Timestamp {
        Timestamp::from_second(NOW).unwrap()
    }

    /// Returns a record from so many seconds ago.
    fn record(ago: i64, body: Vec<u8>) -> Record {
        let at = Timestamp::from_second(NOW - ago).unwrap();
        Record { position: RecordPosition::default(), at, body }
    }

    /// Returns the number of records that are kept. The newest record comes first.
    fn kept(mut policy: RetentionPolicy, records: impl IntoIterator<Item = Record>) -> usize {
        records.into_iter().filter(|record| policy(record) == Retention::Keep).count()
    }

    fn hook(outcome: HookOutcome, ballast: usize) -> Vec<u8> {
        let journal = JournalRecord {
            seq: 1,
            event: Event::Start,
            attempt: 1,
            snapshot: Revision(1),
            charm: Digest::of(b"a"),
            component: Digest::of(b"b"),
            engine: "x".repeat(ballast),
            started_at: now(),
            outcome,
            costs: HookCosts::default(),
            coalesced: vec![],
            calls: RecordedCalls::default(),
            seed: String::new(),
            sealed: Default::default(),
        };
        let (model, entity) = (ModelUuid(uuid::Uuid::nil()), "a/0".to_owned());
        let append = RecordAppend { model, entity, at: now(), body: RecordBody::Journal(Box::new(journal)) };
        let changes = Changes { records: vec![append], ..Changes::default() };
        codec::batch(Revision(0), [codec::Writes::of(&changes).unwrap()]).records.remove(0).body
    }

    fn failed(ballast: usize) -> Vec<u8> {
        hook(HookOutcome::Failed { message: "no".into() }, ballast)
    }

    #[test]
    fn log_lines_are_kept_by_age_and_by_what_they_take() {
        let short = |ago| record(ago, b"line".to_vec());
        assert_eq!(kept(log(now()), [short(0), short(MAX_AGE), short(MAX_AGE + 1)]), 2);
        let megabyte = record(0, vec![b'x'; 1 << 20]);
        let many = std::iter::repeat_n(megabyte, 300).chain([short(0)]);
        assert_eq!(kept(log(now()), many), 256, "nothing that is older, either");
    }

    #[test]
    fn a_status_history_has_its_share_and_its_newest_line() {
        let megabyte = ModelConfig { max_status_history_size: 1, ..ModelConfig::default() };
        let lines = |size: usize| (0..1_200).map(move |ago| record(ago, vec![b'x'; size]));
        assert_eq!(kept(history(now(), &ModelConfig::default(), 1), lines(1)), MAX_STATUSES);
        assert_eq!(kept(history(now(), &megabyte, 4), lines(1 << 10)), 256);
        assert_eq!(kept(history(now(), &megabyte, 1_000), lines(4 << 10)), 1, "the present status");
        let age = i64::from(megabyte.max_status_history_age);
        assert_eq!(kept(history(now(), &megabyte, 1), [record(age, vec![]), record(age + 1, vec![])]), 1);
        assert_eq!(kept(history(now(), &megabyte, 1), [record(age + 1, vec![])]), 0);
    }

    #[test]
    fn the_newest_fifty_hooks_are_kept_and_failures_of_seven_days_besides() {
        let (good, bad) = (hook(HookOutcome::Handled, 0), failed(0));
        // A hook runs every hour, and every second one fails.
        let life = (0..400).map(|hour| record(hour * 3600, if hour % 2 == 0 { &good } else { &bad }.clone()));
        // Some failures are among the first fifty.
        assert_eq!(kept(journal(now()), life), 50 + (168 - 50) / 2);
        assert_eq!(kept(journal(now()), (0..400).map(|hour| record(hour * 3600, good.clone()))), 50);
        let days = (0..30).map(|day| record(day * DAY, good.clone()));
        assert_eq!(kept(journal(now()), days), 15, "and none for longer than anything");
    }

    #[test]
    fn failures_are_bounded_by_what_they_take() {
        let large = failed(1 << 20);
        let failures = (0..200).map(|minute| record(minute * 60, large.clone()));
        assert_eq!(kept(journal(now()), failures), 50 + 15, "a little less than 16 fit");
    }
}
