//! The trimming of the log by the controller that leads, and the positions that make it safe.
//!
//! An entry may go when its effect is durable on the disk of the leading controller and of one other, and when no
//! controller that reports still needs it. A window of the newest entries stays, so that a controller that was away for a
//! short while needs no snapshot.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_host_api::Revision;
use periapt_log::{Log, LogError, MemberProgress, Term, trimmable};
use tokio_util::sync::CancellationToken;

use super::Members;
use crate::{clock::Clock, presence::Presence, published::Subscription, store_slot::StoreSlot};

/// The interval of syncs of the store. The log still has what a crash of the machine takes from it.
const SYNC_EVERY: Duration = Duration::from_secs(5);

/// The interval of trimmings.
const TRIM_EVERY: Duration = Duration::from_secs(10);

/// The bytes of the newest entries that stay in the log. etcd has room for 2 GiB unless its operator gives it more.
pub const KEPT_LOG_BYTES: usize = 64 << 20;

/// The newest entries of the log, as far as this controller has seen them. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct RecentEntries {
    kept_bytes: usize,
    entries: Arc<Mutex<Entries>>,
}

#[derive(Default)]
struct Entries {
    sizes: VecDeque<(Revision, usize)>,
    bytes: usize,
}

impl RecentEntries {
    /// Keeps at least so many bytes.
    pub(crate) fn new(kept_bytes: usize) -> Self {
        Self { kept_bytes, entries: Arc::default() }
    }

    /// Notes an entry.
    pub(crate) fn note(&self, position: Revision, bytes: usize) {
        let mut entries = self.entries.lock();
        entries.sizes.push_back((position, bytes));
        entries.bytes += bytes;
        while let Some((_, oldest)) = entries.sizes.front().copied()
            && entries.sizes.len() > 1
            && entries.bytes - oldest >= self.kept_bytes
        {
            entries.sizes.pop_front();
            entries.bytes -= oldest;
        }
    }

    /// Returns the last position before those that stay.
    fn before(&self) -> Revision {
        let oldest = self.entries.lock().sizes.front().map_or(0, |(position, _)| position.0);
        Revision(oldest.saturating_sub(1))
    }
}

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

/// The trimming of one leadership.
pub(super) struct Trimming {
    pub(super) log: Arc<dyn Log>,
    pub(super) term: Term,
    pub(super) recent: RecentEntries,
    pub(super) durable: DurablePosition,
    pub(super) presence: Presence,
    pub(super) members: Members,
    pub(super) clock: Arc<dyn Clock>,
}

impl Trimming {
    /// Trims at intervals, for ever.
    pub(super) async fn run(self) {
        let mut trimmed = Revision(0);
        loop {
            self.clock.sleep(TRIM_EVERY).await;
            let Some(through) = self.through().filter(|through| *through > trimmed) else { continue };
            match self.log.trim(self.term, through).await {
                Ok(()) => {
                    tracing::debug!(%through, "the log was trimmed");
                    trimmed = through;
                }
                // The leadership ends by itself.
                Err(LogError::Deposed(_)) => {}
                Err(error) => tracing::warn!(%error, "the log could not be trimmed"),
            }
        }
    }

    /// Returns the last position that the log need not have any more.
    fn through(&self) -> Option<Revision> {
        let reports = self.presence.members();
        let reports: Vec<_> = reports
            .values()
            .map(|report| MemberProgress {
                applied: Revision(report.applied),
                durable: Revision(report.durable),
            })
            .collect();
        let through = trimmable(self.durable.get(), self.members.others().len(), &reports)?;
        Some(through.min(self.recent.before()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_entries_stay_up_to_their_bytes() {
        let recent = RecentEntries::new(100);
        assert_eq!(recent.before(), Revision(0));
        for position in 5..=7 {
            recent.note(Revision(position), 40);
        }
        assert_eq!(recent.before(), Revision(4), "two would be less than the window");
        recent.note(Revision(8), 40);
        assert_eq!(recent.before(), Revision(5));
        recent.note(Revision(9), 1_000);
        assert_eq!(recent.before(), Revision(8));
        let none = RecentEntries::new(0);
        none.note(Revision(3), 10);
        none.note(Revision(4), 10);
        assert_eq!(none.before(), Revision(3));
    }
}
