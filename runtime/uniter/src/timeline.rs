//! The clock of units' timers.

use periapt_host_api::Timestamp;
use serde::{Deserialize, Serialize};

use crate::jitter::later;

/// A clock for [`crate::resolve`]: it starts at the wall clock's time, and advances with the boot clock, which cannot
/// be set. So a change of the wall clock during an agent's life neither delays nor hastens retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Timeline {
    began: Timestamp,
    began_boot_ms: u64,
}

impl Timeline {
    /// Creates a timeline from a reading of the wall clock and one of the boot clock, in milliseconds.
    pub fn new(wall: Timestamp, boot_ms: u64) -> Self {
        // To the millisecond, like the boot clock.
        Self { began: later(wall, 0), began_boot_ms: boot_ms }
    }

    /// Returns the time at a reading of the boot clock.
    pub fn at(self, boot_ms: u64) -> Timestamp {
        later(self.began, boot_ms.saturating_sub(self.began_boot_ms))
    }

    /// Returns the reading of the boot clock at a time, in milliseconds.
    pub fn boot_ms(self, at: Timestamp) -> u64 {
        let ahead = at.duration_since(self.began);
        let whole = u64::try_from(ahead.as_millis()).unwrap_or(0);
        // Rounded up, so that the time has come when the reading is reached.
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
