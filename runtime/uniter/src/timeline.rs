//! The time that a unit's timers run by.

use periapt_host_api::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jitter::later;

/// Makes of the clock that nobody sets the times that [`crate::resolve`] is given: the wall clock as it stood once, going
/// on by the other one. So a wall clock that is set while an agent runs holds no retry back and hurries none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timeline {
    began: Timestamp,
    began_boot_ms: u64,
}

impl Timeline {
    /// Begins when the wall clock shows `wall`, and the clock of leases `boot_ms` milliseconds.
    pub fn new(wall: Timestamp, boot_ms: u64) -> Self {
        // To the millisecond, as the other clock.
        Self { began: later(wall, 0), began_boot_ms: boot_ms }
    }

    /// The time at which the clock of leases shows so many milliseconds.
    pub fn at(self, boot_ms: u64) -> Timestamp {
        later(self.began, boot_ms.saturating_sub(self.began_boot_ms))
    }

    /// What the clock of leases shows when a time has come, in milliseconds.
    pub fn boot_ms(self, at: Timestamp) -> u64 {
        let ahead = at.duration_since(self.began);
        let whole = u64::try_from(ahead.as_millis()).unwrap_or(0);
        // Rounded up: whoever waits for a time must find it reached.
        let rest = u64::from(!ahead.is_negative() && ahead.subsec_nanos() % 1_000_000 > 0);
        self.began_boot_ms.saturating_add(whole).saturating_add(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_reached_when_the_clock_shows_what_was_said() {
        let began: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let timeline = Timeline::new("2026-01-01T00:00:00.000000300Z".parse().unwrap(), 5_000);
        assert_eq!(timeline.at(5_000), began);
        for wait in ["2026-01-01T00:00:01Z", "2026-01-01T00:00:00.000000001Z", "2027-06-01T00:00:00Z"] {
            let at: Timestamp = wait.parse().unwrap();
            let shown = timeline.boot_ms(at);
            assert!(timeline.at(shown) >= at && timeline.at(shown - 1) < at, "{wait}");
        }
        assert_eq!(timeline.boot_ms(began), 5_000);
        assert_eq!(timeline.boot_ms(Timestamp::UNIX_EPOCH), 5_000, "what is past is past");
        assert_eq!(timeline.at(u64::MAX), Timestamp::MAX);
    }
}
