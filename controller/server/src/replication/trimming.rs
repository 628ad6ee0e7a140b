//! The trimming of the log by the controller that leads, and the positions that make it safe.
//!
//! An entry may go when its effect is durable on the disk of the leading controller and of one other, and when no
//! controller that reports still needs it. A window of the newest entries stays, so that a controller that was away for
//! a short while needs no snapshot. An entry that does not fit into the bound of the log goes when it is durable on the
//! disk of the leading controller.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use periapt_host_api::{Revision, command::LogUse};
use periapt_log::{Log, LogError, MemberProgress, Term, TrimReason, Trimmable, trimmable};
use tokio_util::sync::CancellationToken;

use super::{Members, recent::RecentEntries};
use crate::{
    clock::Clock, metrics::metrics, presence::Presence, published::Subscription, store_slot::StoreSlot,
};

/// The interval of syncs of the store. The log still has what a crash of the machine takes from it.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// The interval of trimmings.
const TRIM_EVERY: Duration = Duration::from_secs(10);

/// The bytes of older entries that a controller reads at a time to know their sizes.
const READ_BYTES: usize = 4 << 20;

/// The last position whose effect is durable on this controller's disk. Cloning is cheap.
#[derive(Clone, Default)]
pub(crate) struct DurablePosition(Arc<AtomicU64>);

impl DurablePosition {
    /// Returns the position.
    pub(crate) fn get(&self) -> Revision {
        Revision(self.0.load(Ordering::Acquire))
    }

    /// Syncs the store at intervals, until the controller stops.
    pub(crate) async fn keep(
        self,
        state: Subscription,
        store: StoreSlot,
        clock: Arc<dyn Clock>,
        stop: CancellationToken,
    ) {
        loop {
            let applied = state.current().revision();
            if applied != self.get()
                && let Some(store) = store.get()
            {
                match store.sync().await {
                    Ok(()) => self.0.store(applied.0, Ordering::Release),
                    Err(error) => tracing::warn!(%error, "the store could not be synced"),
                }
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = clock.sleep(SYNC_EVERY) => {}
            }
        }
    }
}

/// The trimming of the log, by the controller that leads.
#[derive(Clone)]
pub(crate) struct Trimming {
    pub(super) log: Arc<dyn Log>,
    pub(super) recent: RecentEntries,
    pub(super) durable: DurablePosition,
    pub(super) presence: Presence,
    pub(super) members: Members,
    pub(super) clock: Arc<dyn Clock>,
}

impl Trimming {
    /// Trims at intervals, until this controller does not lead in the term any more.
    pub(crate) async fn run(self, term: Term, until: CancellationToken) {
        tokio::select! {
            () = until.cancelled() => {}
            () = self.trim_in(term) => {}
        }
    }

    /// Trims at intervals, for ever.
    async fn trim_in(&self, term: Term) {
        let (mut trimmed, mut is_measured) = (Revision(0), false);
        let mut warnings = Warnings::default();
        loop {
            self.clock.sleep(TRIM_EVERY).await;
            if !is_measured {
                match measure(&*self.log, &self.recent).await {
                    Ok(()) => is_measured = true,
                    Err(error) => {
                        tracing::warn!(%error, "the size of the log is not known");
                        continue;
                    }
                }
            }
            warnings.of_size(self.recent.usage());
            let Some(part) = self.trimmable().filter(|part| part.through > trimmed) else { continue };
            match self.log.trim(term, part.through).await {
                Ok(()) => {
                    trimmed = part.through;
                    tracing::debug!(through = %trimmed, reason = part.reason.name(), "the log was trimmed");
                    metrics().log_trims.inc(&[part.reason.name()]);
                    self.recent.note_trimmed(trimmed);
                    warnings.of_trimming(part.reason, || self.members.cut_off());
                }
                // The leadership ends by itself.
                Err(LogError::Deposed(_)) => {}
                Err(error) => tracing::warn!(%error, "the log could not be trimmed"),
            }
        }
    }

    /// Returns the part of the log that may be trimmed now.
    fn trimmable(&self) -> Option<Trimmable> {
        let reports = self.presence.members();
        let reports: Vec<_> = reports
            .values()
            .map(|report| MemberProgress {
                applied: Revision(report.applied),
                durable: Revision(report.durable),
            })
            .collect();
        trimmable(self.durable.get(), self.members.others().len(), &reports, self.recent.window())
    }
}

/// Reads the sizes of the entries that the log had before this controller followed it, as far as they matter.
async fn measure(log: &dyn Log, recent: &RecentEntries) -> Result<(), LogError> {
    match log.read(Revision(0), 1).await {
        Ok(_) => {}
        Err(LogError::Trimmed(through)) => recent.note_trimmed(through),
        Err(error) => return Err(error),
    }
    let Some(mut older) = recent.unknown() else { return Ok(()) };
    while !older.is_complete() {
        let entries = log.read(older.after, READ_BYTES).await?;
        if entries.is_empty() {
            break;
        }
        let until = older.until;
        for entry in entries.iter().take_while(|entry| entry.position < until) {
            older.note(entry.position, entry.bytes.len());
        }
    }
    recent.precede(older);
    Ok(())
}

/// The warnings about the size of the log that were given. Each is given once.
#[derive(Default)]
struct Warnings {
    is_large: bool,
    /// The controllers that were cut off, while entries are trimmed that do not fit into the bound.
    cut_off: Option<Vec<String>>,
}

impl Warnings {
    fn of_size(&mut self, usage: LogUse) {
        let was_large = std::mem::replace(&mut self.is_large, usage.is_large());
        let LogUse { entries, bytes, bound } = usage;
        match (was_large, self.is_large) {
            (false, true) => tracing::warn!(
                entries,
                bytes,
                bound,
                "the log is larger than half of its bound: a controller that is away or does not keep up needs its \
                 entries. Those beyond the bound are trimmed"
            ),
            (true, false) => tracing::info!(entries, bytes, bound, "the log is small again"),
            _ => {}
        }
    }

    fn of_trimming(&mut self, reason: TrimReason, cut_off: impl FnOnce() -> Vec<String>) {
        match reason {
            TrimReason::Unneeded => self.cut_off = None,
            TrimReason::Bound => {
                let cut_off = cut_off();
                if self.cut_off.as_ref() != Some(&cut_off) {
                    tracing::warn!(
                        ?cut_off,
                        "the log had no room for all its entries: what was trimmed may be durable on this controller's \
                         disk alone. The controllers that are named take this one's state when they come back"
                    );
                    self.cut_off = Some(cut_off);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use periapt_host_api::StoreId;
    use periapt_log::{Announcement, MemoryLog};

    use super::*;
    use crate::replication::LogBounds;

    #[tokio::test(start_paused = true)]
    async fn a_controller_that_starts_anew_counts_what_the_log_had_before() {
        let log = MemoryLog::new(StoreId(uuid::Uuid::from_u128(1))).member();
        let leadership = log.acquire(Announcement::default()).await.unwrap();
        // Two reads are needed for the older ones.
        let entry = Bytes::from(vec![7; READ_BYTES / 3]);
        for position in 1..=9 {
            log.append(leadership.term(), Revision(position), entry.clone()).await.unwrap();
        }
        log.trim(leadership.term(), Revision(2)).await.unwrap();
        let size = entry.len() as u64;
        let recent = RecentEntries::new(LogBounds { kept: 0, most: 5 * size });
        recent.note(Revision(9), entry.len());
        measure(&log, &recent).await.unwrap();
        assert_eq!(recent.usage(), LogUse { entries: 7, bytes: 7 * size, bound: 5 * size });
        assert_eq!(recent.window().bound, Revision(4));
        log.trim(leadership.term(), Revision(4)).await.unwrap();
        measure(&log, &recent).await.unwrap();
        assert_eq!(recent.usage().entries, 5, "what was trimmed meanwhile is counted no more");
    }
}
