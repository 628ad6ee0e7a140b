//! The checks with which a controller begins: its log, its keys, and its clock.

use futures_util::StreamExt as _;
use periapt_host_api::{Revision, Timestamp};
use periapt_log::{Entry, EntryError, LogError, StoredEntry};

use super::{Replica, ReplicaError};
use crate::replication::{
    apply::{ApplyError, check_blobs, check_keys},
    clocks::clock_difference,
};

/// The number of times that a controller that leads and is silent is asked for its time. One that has ended refuses at once.
const ASKED: usize = 3;

impl Replica {
    /// Refuses a log that is not this controller's, or is newer than its program, and a clock that is far off, before
    /// anything is applied or served.
    pub(super) async fn check_beginning(&mut self) -> Result<(), ReplicaError> {
        self.check_last_entry().await?;
        let leader = self.log.leaders().next().await.ok_or(ReplicaError::Ended)??;
        // After a crash, its own leadership lasts for a moment.
        let Some(leader) = leader.filter(|leader| leader.announcement.member != self.announcement.member)
        else {
            return Ok(());
        };
        check_keys(&self.announcement, &leader.announcement)?;
        check_blobs(&self.announcement, &leader.announcement)?;
        for _ in 0..ASKED {
            if let Some(theirs) = self.reporter.time_of(&leader).await {
                return self.compare_clock(theirs);
            }
        }
        // It does not answer: the clocks are compared with the first answer to a report.
        Ok(())
    }

    /// Refuses a log whose last entry is of a higher level, and a clock that is behind that entry. One that is ahead is no
    /// wonder: the log may be at rest.
    async fn check_last_entry(&self) -> Result<(), ReplicaError> {
        let end = self.log.end().await?;
        let last = match self.log.read(Revision(end.0.saturating_sub(1)), 1).await {
            // The log of a restored store has no entry yet.
            Err(LogError::Trimmed(_)) => None,
            last => last?.into_iter().next(),
        };
        let Some(StoredEntry { position, bytes }) = last else { return Ok(()) };
        let entry = match Entry::decode(position, &bytes) {
            Err(error @ EntryError::TooNew { .. }) => return Err(ApplyError::from(error).into()),
            // It is told when the entry is applied.
            Err(_) => return Ok(()),
            Ok(entry) => entry,
        };
        let now = self.writer.clock.now();
        self.check_clock(entry.at.max(now), "the last entry of the log")
    }

    /// Compares the clock with that of the controller that leads, and refuses one that is far off at the start.
    pub(super) fn compare_clock(&mut self, theirs: Timestamp) -> Result<(), ReplicaError> {
        self.clock.compare(theirs);
        // Only at the start: the clock of the controller that leads may be the wrong one, and the others go on.
        if std::mem::replace(&mut self.is_clock_checked, true) {
            return Ok(());
        }
        self.check_clock(theirs, "that of the controller which leads")
    }

    /// Refuses to go on with a clock that is far off.
    fn check_clock(&self, theirs: Timestamp, other: &'static str) -> Result<(), ReplicaError> {
        let difference = clock_difference(self.writer.clock.now(), theirs);
        difference.map_or(Ok(()), |difference| Err(ReplicaError::Clock { difference, other }))
    }
}
