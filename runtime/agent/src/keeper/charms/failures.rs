//! What was wrong with a charm that cannot run: it is not fetched and compiled again each time that it is asked for.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::{CharmDigest, Refusal, Timestamp};
use tokio::time::Instant;

use crate::backoff::Backoff;

/// The first wait: what was wrong may have been this host's fault after all (too little memory to compile).
const FIRST: Duration = Duration::from_secs(15);

/// The longest: a charm may take five minutes of all cores to compile.
const LAST: Duration = Duration::from_secs(30 * 60);

/// How often a charm failed, and the last time why.
#[derive(Debug)]
pub(super) struct Failures(Mutex<Inner>);

#[derive(Debug)]
struct Inner {
    backoff: Backoff,
    last: Option<(Refusal, Instant)>,
}

impl Default for Failures {
    fn default() -> Self {
        Self(Mutex::new(Inner { backoff: Backoff::new(FIRST, LAST), last: None }))
    }
}

impl Failures {
    /// What was wrong the last time, if that is too recent to try again.
    pub(super) fn still_counts(&self) -> Option<Refusal> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.last.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(refusal, _)| refusal.clone())
    }

    /// It failed once more: what callers are told from now on, with the time of the next attempt.
    pub(super) fn failed(&self, digest: CharmDigest, mut refusal: Refusal) -> Refusal {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let wait = inner.backoff.failed();
        let at = Timestamp::now().checked_add(wait).unwrap_or(Timestamp::MAX);
        tracing::warn!(charm = %digest.short(), %refusal, ?wait, "a charm cannot be put in place");
        refusal.message =
            format!("{} (not tried again before {})", refusal.message, at.strftime("%H:%M:%SZ"));
        inner.last = Some((refusal.clone(), Instant::now() + wait));
        refusal
    }
}
