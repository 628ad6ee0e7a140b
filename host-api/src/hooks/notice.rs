//! Notices of workloads that their charm is told of: custom notices, and checks that began to fail or that recovered.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ContainerName;

/// The type of notices that clients make, as Pebble names it.
pub const CUSTOM_NOTICE: &str = "custom";

/// The most custom notices of a container that wait for its charm. A workload can make them without end, under as many
/// keys as it likes; the latest ones stay.
pub const MAX_WAITING_CUSTOM: usize = 64;

/// The most events about checks of a container that wait for its charm: both kinds for each check that a plan can have.
pub const MAX_WAITING_CHECKS: usize = 400;

/// The most bytes of a notice's key, and of a check's name.
pub const MAX_NOTICE_KEY_BYTES: usize = 255;

/// The origin of an event about a notice.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct NoticeContext {
    /// The container.
    pub container: ContainerName,
    /// The id of the container's start in which it happened.
    pub boot_id: String,
    /// The number of the notice, counted from that start.
    pub number: u64,
}

/// A notice of a workload.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadNotice {
    /// A client of Pebble made a notice, or repeated it.
    #[serde(rename_all = "kebab-case")]
    Custom {
        /// The notice's id in Pebble.
        id: u64,
        /// The notice's key.
        key: String,
    },
    /// A check reached its threshold of failures.
    #[serde(rename_all = "kebab-case")]
    CheckFailed {
        /// The check's name.
        check: String,
    },
    /// A check that had failed succeeded.
    #[serde(rename_all = "kebab-case")]
    CheckRecovered {
        /// The check's name.
        check: String,
    },
}

impl WorkloadNotice {
    /// Returns true if its key or name is within [`MAX_NOTICE_KEY_BYTES`].
    pub fn is_within_bounds(&self) -> bool {
        let (Self::Custom { key: text, .. }
        | Self::CheckFailed { check: text }
        | Self::CheckRecovered { check: text }) = self;
        text.len() <= MAX_NOTICE_KEY_BYTES
    }

    fn is_custom(&self) -> bool {
        matches!(self, Self::Custom { .. })
    }
}

/// A notice that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingNotice {
    /// The place of its arrival among those of all containers.
    pub arrival: u64,
    /// The notice.
    pub notice: WorkloadNotice,
}

/// The notices of one start of a container that wait for its charm, by number. A notice that repeats waits once, under
/// its latest number. So a charm that has been told of all notices up to a number has missed none, and the number is all
/// that its unit must remember.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WaitingNotices {
    waiting: BTreeMap<u64, WaitingNotice>,
    numbers: BTreeMap<WorkloadNotice, u64>,
    custom: usize,
    last: u64,
}

impl WaitingNotices {
    /// Adds a notice under the next number.
    pub fn push(&mut self, notice: WorkloadNotice) -> RemovedNotices {
        let number = self.last + 1;
        self.add(number, number, notice)
    }

    /// Adds a notice with a number that is higher than all earlier ones; another one is ignored. Returns the notices that
    /// do not wait any more: an earlier one that this one repeats, and one for which there is no room.
    pub fn add(&mut self, number: u64, arrival: u64, notice: WorkloadNotice) -> RemovedNotices {
        let mut removed = RemovedNotices::default();
        if number <= self.last {
            return removed;
        }
        self.last = number;
        removed.repeated = self.numbers.get(&notice).copied().and_then(|earlier| self.remove(earlier));
        let (is_custom, checks) = (notice.is_custom(), self.waiting.len() - self.custom);
        let is_full = match is_custom {
            true => self.custom >= MAX_WAITING_CUSTOM,
            false => checks >= MAX_WAITING_CHECKS,
        };
        if is_full {
            let oldest = self.waiting.iter().find(|(_, waiting)| waiting.notice.is_custom() == is_custom);
            let oldest = oldest.map(|(number, _)| *number);
            removed.dropped = oldest.and_then(|oldest| self.remove(oldest));
        }
        self.custom += usize::from(is_custom);
        self.numbers.insert(notice.clone(), number);
        self.waiting.insert(number, WaitingNotice { arrival, notice });
        removed
    }

    /// Removes the notices up to a number, of which the charm has been told, and returns them.
    pub fn told(&mut self, number: u64) -> Vec<WaitingNotice> {
        let told: Vec<u64> = self.waiting.range(..=number).map(|(number, _)| *number).collect();
        told.into_iter().filter_map(|number| self.remove(number)).collect()
    }

    /// Returns the notices after a number, in order.
    pub fn after(&self, number: u64) -> impl Iterator<Item = (u64, &WaitingNotice)> {
        let after = number.checked_add(1).map(|from| self.waiting.range(from..));
        after.into_iter().flatten().map(|(number, waiting)| (*number, waiting))
    }

    /// Returns the number of the last notice that was added; 0 before the first.
    pub fn last(&self) -> u64 {
        self.last
    }

    /// Returns true if none waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn remove(&mut self, number: u64) -> Option<WaitingNotice> {
        let removed = self.waiting.remove(&number)?;
        self.numbers.remove(&removed.notice);
        self.custom -= usize::from(removed.notice.is_custom());
        Some(removed)
    }
}

/// The notices that another one has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedNotices {
    /// The same notice, which has repeated.
    pub repeated: Option<WaitingNotice>,
    /// The oldest notice, for which there is no room. The charm is not told of it.
    pub dropped: Option<WaitingNotice>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn custom(id: u64) -> WorkloadNotice {
        WorkloadNotice::Custom { id, key: format!("a.b/{id}") }
    }

    fn failed(check: &str) -> WorkloadNotice {
        WorkloadNotice::CheckFailed { check: check.to_owned() }
    }

    fn numbers(waiting: &WaitingNotices, after: u64) -> Vec<u64> {
        waiting.after(after).map(|(number, _)| number).collect()
    }

    #[test]
    fn a_notice_that_repeats_waits_once_in_its_latest_place() {
        let mut waiting = WaitingNotices::default();
        for (number, id) in [(1, 7), (2, 8), (3, 7)] {
            waiting.add(number, number, custom(id));
        }
        assert_eq!(numbers(&waiting, 0), [2, 3]);
        assert_eq!(waiting.add(3, 9, custom(9)), RemovedNotices::default(), "an old number is ignored");
        assert_eq!(waiting.told(2), [WaitingNotice { arrival: 2, notice: custom(8) }]);
        assert_eq!((numbers(&waiting, 0), waiting.last()), (vec![3], 3));
        assert_eq!(numbers(&waiting, u64::MAX), [0; 0]);
    }

    #[test]
    fn a_flood_of_notices_pushes_out_the_oldest_and_no_check() {
        let mut waiting = WaitingNotices::default();
        waiting.add(1, 1, failed("up"));
        let last = MAX_WAITING_CUSTOM as u64 + 3;
        let dropped: Vec<_> =
            (2..=last).filter_map(|number| waiting.add(number, number, custom(number)).dropped).collect();
        assert_eq!(dropped.iter().map(|it| it.arrival).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(numbers(&waiting, 0).len(), MAX_WAITING_CUSTOM + 1);
        assert_eq!(numbers(&waiting, 0)[..2], [1, 4]);
        waiting.told(last);
        assert!(waiting.is_empty());
        assert_eq!(waiting.add(last + 1, 0, failed("up")), RemovedNotices::default());
    }
}
