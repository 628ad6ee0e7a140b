//! All units of the runner: each has a task of its own, and they run in parallel.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::UnitName;
use tokio::{
    task::{AbortHandle, JoinSet},
    time::{Instant, sleep_until},
};

use super::{RunnerError, World, outbox::Outbox, unit::Unit};
use crate::{clock, protocol::ToKeeper};

/// A runner that has something due this soon does not offer to exit: starting another costs more than to wait.
const SOON: Duration = Duration::from_secs(10);

/// A unit that is looked after.
struct Managed {
    outbox: Arc<Outbox>,
    pump: AbortHandle,
}

/// The units' tasks.
struct Units {
    world: Arc<World>,
    managed: BTreeMap<UnitName, Managed>,
    /// Units that the resolver is done with, for as long as the view still shows them.
    stopped: BTreeSet<UnitName>,
    tasks: JoinSet<Result<Option<UnitName>, RunnerError>>,
}

/// Looks after whatever units the view shows.
pub(crate) async fn run(world: Arc<World>) -> Result<(), RunnerError> {
    let mut changes = world.mirror.changes();
    let mut units =
        Units { world, managed: BTreeMap::new(), stopped: BTreeSet::new(), tasks: JoinSet::new() };
    let mut seen_at = Instant::now();
    loop {
        let shown: BTreeSet<_> = changes.view().units.keys().cloned().collect();
        units.follow(shown);
        let quiet_at = seen_at.max(units.world.board.changed_at()) + units.idle_after();
        tokio::select! {
            () = changes.next() => seen_at = Instant::now(),
            Some(ended) = units.tasks.join_next() => match ended {
                Ok(Ok(unit)) => units.ended(unit),
                Ok(Err(error)) => return Err(error),
                // A pump that was told to end, with its unit; a unit's task that panicked is a defect, and
                // ends the runner so that the unit is not left alone.
                Err(error) if error.is_cancelled() => {}
                Err(error) => return Err(RunnerError::NoKeeper(std::io::Error::other(error))),
            },
            () = sleep_until(quiet_at) => {
                if seen_at.max(units.world.board.changed_at()) + units.idle_after() <= Instant::now() {
                    units.offer_to_exit().await;
                    seen_at = Instant::now();
                }
            }
        }
    }
}

impl Units {
    fn idle_after(&self) -> Duration {
        Duration::from_millis(self.world.start.idle_after_ms)
    }

    /// Starts to look after units that are new. Those that are gone end by themselves.
    fn follow(&mut self, shown: BTreeSet<UnitName>) {
        self.stopped.retain(|unit| shown.contains(unit));
        for name in shown {
            if self.managed.contains_key(&name) || self.stopped.contains(&name) {
                continue;
            }
            let unit = Unit::new(Arc::clone(&self.world), name.clone());
            let outbox = unit.outbox();
            let pumping = Arc::clone(&outbox);
            let pump = self.tasks.spawn(async move {
                pumping.pump().await;
                Ok(None)
            });
            let ended = name.clone();
            self.tasks.spawn(async move {
                unit.run().await?;
                Ok(Some(ended))
            });
            self.managed.insert(name, Managed { outbox, pump });
        }
    }

    /// A unit's task ended: what its hooks left is sent, and then its pump ends, too.
    fn ended(&mut self, unit: Option<UnitName>) {
        let Some(unit) = unit else { return };
        self.world.board.remove(&unit);
        if let Some(Managed { outbox, pump }) = self.managed.remove(&unit) {
            self.tasks.spawn(async move {
                outbox.sender().await.send().await;
                pump.abort();
                Ok(None)
            });
        }
        self.stopped.insert(unit);
    }

    /// Tells the keeper that nothing is due, if so.
    async fn offer_to_exit(&self) {
        let unsent = self.managed.values().any(|managed| !managed.outbox.is_empty());
        let unsent = unsent || !self.world.storages.at_rest();
        let (Some(wake_at), Some(position), false) =
            (self.world.board.at_rest(), self.world.mirror.position(), unsent)
        else {
            return;
        };
        let timeline = self.world.start.timeline;
        if wake_at.is_none_or(|at| clock::until(timeline, at) >= SOON) {
            self.world.link.tell(ToKeeper::Idle { position, wake_at }).await;
        }
    }
}
