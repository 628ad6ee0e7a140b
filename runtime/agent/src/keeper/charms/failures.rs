//! Why a charm was not put in place: it is not fetched and compiled again each time that somebody asks for it.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::{Digest, Timestamp};
use tokio::time::Instant;

use super::CharmError;
use periapt_client::Backoff;

/// The first wait after a failure of the charm's own: it may have been this host's fault after all (too little memory to
/// compile).
const FIRST: Duration = Duration::from_secs(15);

/// The longest: a charm may take five minutes of all cores to compile.
const LAST: Duration = Duration::from_secs(30 * 60);

/// The first wait after any other failure: a controller that restarts is found again within the second.
const FIRST_AWAY: Duration = Duration::from_millis(100);

/// The longest for a controller that is away: to ask it costs little.
const LAST_UNREACHABLE: Duration = Duration::from_secs(15);

/// The longest for what the controller has or this host lacks: each host fetches up to 128 MiB again, and whoever has
/// mended what was wrong wants to see it.
const LAST_AWAY: Duration = Duration::from_secs(5 * 60);

/// How often a charm failed, and the last time why.
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
    /// What was wrong the last time, if that is too recent to try again.
    pub(super) fn still_counts(&self) -> Option<CharmError> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.last.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(error, _)| error.clone())
    }

    /// It failed once more: what callers are told from now on. If the charm is to blame, with the time of the next
    /// attempt.
    pub(super) fn failed(&self, digest: Digest, error: CharmError) -> CharmError {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
                // The controller was there.
                inner.unreachable.succeeded();
                (error, inner.away.failed())
            }
        };
        tracing::warn!(charm = %digest.short(), %error, ?wait, "a charm cannot be put in place");
        inner.last = Some((error.clone(), Instant::now() + wait));
        error
    }
}
