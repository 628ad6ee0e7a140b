//! The failures of a charm, which delay further attempts to fetch and compile it.

use std::time::Duration;

use parking_lot::Mutex;
use periapt_host_api::{Digest, Timestamp};
use tokio::time::Instant;

use super::CharmError;
use periapt_client::Backoff;

/// The first wait after a failure of the charm itself. The host may have caused it after all, such as by too little
/// memory for the compiler.
const FIRST: Duration = Duration::from_secs(15);

/// The longest wait after a failure of the charm itself: compiling may take five minutes of all cores.
const LAST: Duration = Duration::from_secs(30 * 60);

/// The first wait after any other failure: a restarting controller is found again within a second.
const FIRST_AWAY: Duration = Duration::from_millis(100);

/// The longest wait for an unreachable controller: an attempt costs little.
const LAST_UNREACHABLE: Duration = Duration::from_secs(15);

/// The longest wait for an error on the controller or this host. Each attempt may fetch 128 MiB, and an operator who
/// has fixed the error wants to see the result.
const LAST_AWAY: Duration = Duration::from_secs(5 * 60);

/// The number of a charm's failures, and the last error.
#[derive(Debug)]
pub(super) struct Failures(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    charm: Backoff,
    unreachable: Backoff,
    away: Backoff,
    last: Option<(CharmError, Instant)>,
}

impl Default for Failures {
    fn default() -> Self {
        Self(Mutex::new(Inner {
            charm: Backoff::at_least(FIRST, LAST),
            unreachable: Backoff::at_least(FIRST_AWAY, LAST_UNREACHABLE),
            away: Backoff::at_least(FIRST_AWAY, LAST_AWAY),
            last: None,
        }))
    }
}

impl Failures {
    /// Returns the last error until the next attempt is due.
    pub(super) fn still_counts(&self) -> Option<CharmError> {
        let inner = self.0.lock();
        inner.last.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(error, _)| error.clone())
    }

    /// Records a failure. Returns the error for callers; for an invalid charm it contains the time of the next attempt.
    pub(super) fn failed(&self, digest: Digest, error: CharmError) -> CharmError {
        let mut inner = self.0.lock();
        let (error, wait) = match error {
            CharmError::Charm(mut refusal) => {
                let wait = inner.charm.failed();
                let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
                refusal.message =
                    format!("{} (not tried again before {})", refusal.message, at.strftime("%H:%M:%SZ"));
                (CharmError::Charm(refusal), wait)
            }
            error @ CharmError::Unreachable(_) => (error, inner.unreachable.failed()),
            error @ CharmError::Away(_) => {
                // The controller answered.
                inner.unreachable.succeeded();
                (error, inner.away.failed())
            }
        };
        tracing::warn!(charm = %digest.short(), %error, ?wait, "a charm cannot be installed");
        inner.last = Some((error.clone(), Instant::now() + wait));
        error
    }
}
