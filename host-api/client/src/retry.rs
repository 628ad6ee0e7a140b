//! The pauses between the attempts of a call.

use std::time::Duration;

use http::{HeaderMap, header};
use tokio::time::Instant;

use crate::Backoff;

/// The first pause between attempts.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between attempts.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// The longest pause that a controller can ask for.
const LONGEST_ASKED: Duration = Duration::from_secs(30);

/// Attempts within a time.
#[derive(Debug)]
pub(crate) struct Retry {
    until: Instant,
    backoff: Backoff,
}

impl Retry {
    /// Allows attempts within this time from now.
    pub(crate) fn new(within: Duration) -> Self {
        Self { until: Instant::now() + within, backoff: Backoff::new(FIRST_PAUSE, LONGEST_PAUSE) }
    }

    /// Waits for the next attempt, at least as long as the controller asks; returns false if the time is over.
    pub(crate) async fn next(&mut self, asked: Option<Duration>) -> bool {
        // The jitter spreads the attempts of callers that were refused together.
        let wait = asked.unwrap_or_default().min(LONGEST_ASKED) + self.backoff.failed();
        if Instant::now() + wait > self.until {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

/// Returns the time that a response asks its caller to wait. Controllers send whole seconds.
pub(crate) fn asked_for(headers: &HeaderMap) -> Option<Duration> {
    let seconds = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    async fn waits(within: Duration, asked: Option<Duration>) -> Vec<Duration> {
        let (mut retry, mut waits) = (Retry::new(within), Vec::new());
        loop {
            let began = Instant::now();
            if !retry.next(asked).await {
                return waits;
            }
            waits.push(began.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_to_a_bound_and_end_in_time() {
        let waits = waits(Duration::from_secs(60), None).await;
        assert!(waits[0] >= FIRST_PAUSE / 2 && waits[0] <= FIRST_PAUSE, "{waits:?}");
        assert!(waits.iter().all(|wait| *wait <= LONGEST_PAUSE), "{waits:?}");
        assert!(waits.len() > 15, "{waits:?}");
        let all: Duration = waits.iter().sum();
        assert!(all <= Duration::from_secs(60) && all > Duration::from_secs(50), "{all:?}");
        assert_eq!(self::waits(Duration::ZERO, None).await, Vec::<Duration>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn a_controller_is_given_the_time_that_it_asks_for_within_a_bound() {
        let asked = Duration::from_secs(2);
        let waits = waits(Duration::from_secs(20), Some(asked)).await;
        assert!(!waits.is_empty() && waits.iter().all(|wait| *wait > asked), "{waits:?}");
        let hour = Duration::from_secs(3_600);
        assert_eq!(self::waits(hour / 2, Some(hour)).await[0].as_secs(), LONGEST_ASKED.as_secs());
    }

    #[test]
    fn what_is_no_number_of_seconds_asks_for_nothing() {
        let headers = |value| HeaderMap::from_iter([(header::RETRY_AFTER, HeaderValue::from_static(value))]);
        assert_eq!(asked_for(&headers("3")), Some(Duration::from_secs(3)));
        for other in ["Fri, 31 Dec 1999 23:59:59 GMT", "-1", "", "soon"] {
            assert_eq!(asked_for(&headers(other)), None, "{other}");
        }
        assert_eq!(asked_for(&HeaderMap::new()), None);
    }
}
