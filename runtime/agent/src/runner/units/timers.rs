//! One timer for all units. A unit waits for a time on the clock of timers, which runs while the host is suspended, or
//! on the monotonic clock.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{Timestamp, UnitName};
use periapt_uniter::executor::{ExecutorInput, Wake};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

use super::{Units, yield_after};
use crate::clock;

/// The longest sleep before the next check of the clock: sleeps stop while the host is suspended.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// The wake-up times of the units.
#[derive(Default)]
pub(super) struct Timers {
    waits: Mutex<Waits>,
    /// A notification that the earliest time has changed.
    sooner: Notify,
}

#[derive(Default)]
struct Waits {
    at: BTreeSet<(Timestamp, UnitName)>,
    after: BTreeSet<(Duration, UnitName)>,
}

impl Timers {
    /// Replaces a unit's wake-up times.
    pub(super) fn set(&self, unit: &UnitName, before: Wake, wake: Wake) {
        let mut waits = self.waits.lock();
        let firsts = |waits: &Waits| {
            (waits.at.first().map(|(at, _)| *at), waits.after.first().map(|(after, _)| *after))
        };
        let first = firsts(&waits);
        before.at.map(|at| waits.at.remove(&(at, unit.clone())));
        before.after.map(|after| waits.after.remove(&(after, unit.clone())));
        waits.at.extend(wake.at.map(|at| (at, unit.clone())));
        waits.after.extend(wake.after.map(|after| (after, unit.clone())));
        if firsts(&waits) != first {
            self.sooner.notify_one();
        }
    }
}

impl Units {
    /// Wakes units at their times, for ever.
    pub(super) async fn keep_time(self: &Arc<Self>) {
        loop {
            let due = self.due();
            for (count, name) in due.iter().enumerate() {
                let unit = self.managed.lock().get(name).map(Arc::clone);
                if let Some(unit) = unit {
                    self.feed(&unit, ExecutorInput::Woken);
                }
                yield_after(count).await;
            }
            let next = self.next_time();
            tokio::select! {
                () = sleep_until(next) => {}
                () = self.timers.sooner.notified() => {}
            }
        }
    }

    /// Returns the units whose time has come.
    fn due(&self) -> BTreeSet<UnitName> {
        let now = self.now();
        let waits = self.timers.waits.lock();
        let at = waits.at.iter().take_while(|(at, _)| *at <= now.timer).map(|(_, unit)| unit.clone());
        let after =
            waits.after.iter().take_while(|(after, _)| *after <= now.steady).map(|(_, unit)| unit.clone());
        at.chain(after).collect()
    }

    fn next_time(&self) -> Instant {
        let now = Instant::now();
        let waits = self.timers.waits.lock();
        let timeline = self.runner.start.timeline;
        let at = waits.at.first().map(|(at, _)| clock::until(timeline, *at).min(CLOCK_CHECK));
        let check = now + at.unwrap_or(CLOCK_CHECK);
        waits.after.first().map_or(check, |(after, _)| check.min(self.since + *after))
    }
}
