//! The clocks of this host.

use std::{fmt, sync::Arc, time::Duration};

use periapt_host_api::Timestamp;
use periapt_uniter::Timeline;
use serde::{Deserialize, Serialize};

/// A time in milliseconds since the host's boot, including its sleep. Keeper and runner of a host read the
/// same clock, which cannot be set back. Leases use it (`docs/hook-model.md` D-3).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct BootTime(pub(crate) u64);

impl BootTime {
    /// Returns the current time.
    pub(crate) fn now() -> Self {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
        let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
        Self(seconds.saturating_mul(1000).saturating_add(nanos / 1_000_000))
    }

    /// Returns a later time.
    pub(crate) fn after(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)))
    }
}

/// A clock of leases: that of this host, or that of a simulated one.
#[derive(Clone, Default)]
pub(crate) enum BootClock {
    /// The clock that [`BootTime::now`] reads.
    #[default]
    Host,
    /// A function that returns the milliseconds of a simulated host.
    Simulated(Arc<dyn Fn() -> u64 + Send + Sync>),
}

impl BootClock {
    /// Returns the current time.
    pub(crate) fn now(&self) -> BootTime {
        match self {
            Self::Host => BootTime::now(),
            Self::Simulated(milliseconds) => BootTime(milliseconds()),
        }
    }
}

impl fmt::Debug for BootClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BootClock({})", self.now().0)
    }
}

/// Returns the duration until a time of a unit's timers; zero once it has passed.
pub(crate) fn until(timeline: Timeline, moment: Timestamp) -> Duration {
    Duration::from_millis(timeline.boot_ms(moment).saturating_sub(BootTime::now().0))
}

/// Returns the current time of units' timers.
pub(crate) fn timer_now(timeline: Timeline) -> Timestamp {
    timeline.at(BootTime::now().0)
}
