//! The time by which certificates are checked.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use periapt_host_api::Timestamp;
use rustls::{pki_types::UnixTime, time_provider::TimeProvider};

/// The machine's clock. Before 1970, which a machine without a battery may show, it says 1970: certificates know no
/// earlier time.
#[derive(Debug)]
pub(crate) struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Some(UnixTime::since_unix_epoch(Duration::from_secs(since.as_secs())))
    }
}

/// Returns a time as certificates count it: seconds since 1970, and none before.
pub(crate) fn seconds(time: Timestamp) -> i64 {
    time.as_second().max(0)
}

/// Returns the time of a count of seconds; the latest time for one that is too large.
pub(crate) fn timestamp(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX)
}
