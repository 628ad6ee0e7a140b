//! The bounds on failed logins of users and failed joins of agents, for each name and network. They are kept in memory: a
//! restart forgets them.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use periapt_host_api::{ErrorCode, Refusal};

use super::Attempt;
use crate::network::Network;

/// The failures of a name from one network that cost no wait: people mistype.
const FREE_FAILURES: u32 = 5;

/// The failures from one network that cost no wait, over all names: many people and hosts may share an address.
const FREE_FAILURES_OF_NETWORK: u32 = 50;

/// The wait after the first failure beyond those, in milliseconds. Each further failure doubles it.
const FIRST_WAIT_MS: u64 = 1_000;

/// The longest wait, in milliseconds: 15 minutes. A person who forgot a password is not locked out for long.
const LONGEST_WAIT_MS: u64 = 15 * 60 * 1_000;

/// The time after which failures are forgotten, in milliseconds.
const FORGOTTEN_AFTER_MS: u64 = 60 * 60 * 1_000;

/// The most names and networks of which failures are remembered. The oldest are forgotten first.
const MAX_REMEMBERED: usize = 10_000;

/// The failed attempts that are remembered: logins of users, or joins of agents. Cloning is cheap.
#[derive(Debug)]
pub(crate) struct Throttle<N> {
    /// The attempts, as a refusal names them.
    attempts: &'static str,
    remembered: Arc<Mutex<RememberedFailures<N>>>,
}

#[derive(Debug)]
struct RememberedFailures<N> {
    of_name: BTreeMap<(Network, N), Failures>,
    of_network: BTreeMap<Network, Failures>,
}

impl<N> Clone for Throttle<N> {
    fn clone(&self) -> Self {
        Self { attempts: self.attempts, remembered: Arc::clone(&self.remembered) }
    }
}

#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    last_ms: u64,
    until_ms: u64,
}

impl Failures {
    const NONE: Self = Self { count: 0, last_ms: 0, until_ms: 0 };

    fn add(&mut self, free: u32, now_ms: u64) {
        if now_ms.saturating_sub(self.last_ms) > FORGOTTEN_AFTER_MS {
            *self = Self::NONE;
        }
        self.count = self.count.saturating_add(1);
        self.last_ms = now_ms;
        if let Some(beyond) = self.count.checked_sub(free + 1) {
            let wait = FIRST_WAIT_MS.checked_shl(beyond.min(32)).unwrap_or(u64::MAX).min(LONGEST_WAIT_MS);
            self.until_ms = now_ms.saturating_add(wait);
        }
    }
}

impl<N: Ord + Clone> Throttle<N> {
    /// Creates a throttle that remembers no failure. Its refusals name the attempts, such as `logins`.
    pub(crate) fn of(attempts: &'static str) -> Self {
        let remembered = RememberedFailures { of_name: BTreeMap::new(), of_network: BTreeMap::new() };
        Self { attempts, remembered: Arc::new(Mutex::new(remembered)) }
    }

    /// Counts an attempt as failed before its secret is checked, so that many at once do not slip through.
    /// [`Throttle::succeeded`] takes the count back.
    ///
    /// # Errors
    /// Too many attempts failed; the refusal says how long to wait.
    pub(crate) fn begin(&self, attempt: &Attempt<N>, now_ms: u64) -> Result<(), Refusal> {
        let mut remembered = self.remembered.lock();
        let key = (attempt.network, attempt.name.clone());
        let of_name = remembered.of_name.get(&key).copied().unwrap_or(Failures::NONE);
        let of_network = remembered.of_network.get(&attempt.network).copied().unwrap_or(Failures::NONE);
        let left = of_name.until_ms.max(of_network.until_ms).saturating_sub(now_ms);
        if left > 0 {
            let (attempts, seconds) = (self.attempts, left.div_ceil(1_000));
            let text = format!("too many failed {attempts}; try again in {seconds} s");
            return Err(Refusal::new(ErrorCode::TooManyRequests, text));
        }
        note(&mut remembered.of_name, key, FREE_FAILURES, now_ms);
        note(&mut remembered.of_network, attempt.network, FREE_FAILURES_OF_NETWORK, now_ms);
        Ok(())
    }

    /// Forgets the failures of a name from a network after an attempt that succeeded.
    pub(crate) fn succeeded(&self, attempt: &Attempt<N>) {
        let mut remembered = self.remembered.lock();
        remembered.of_name.remove(&(attempt.network, attempt.name.clone()));
        // The network keeps its other failures: a guesser may have an account of its own.
        if let Some(failures) = remembered.of_network.get_mut(&attempt.network) {
            failures.count = failures.count.saturating_sub(1);
        }
    }
}

/// Counts a failure. Once too many are remembered, those that are over and the oldest eighth are forgotten together, so
/// that a flood does not search all of them at each failure.
fn note<K: Ord + Clone>(failures: &mut BTreeMap<K, Failures>, key: K, free: u32, now_ms: u64) {
    if failures.len() >= MAX_REMEMBERED && !failures.contains_key(&key) {
        let mut times: Vec<u64> = failures.values().map(|known| known.last_ms).collect();
        let (_, oldest, _) = times.select_nth_unstable(MAX_REMEMBERED / 8);
        let kept_from = (*oldest).max(now_ms.saturating_sub(FORGOTTEN_AFTER_MS));
        failures.retain(|_, known| known.last_ms > kept_from);
    }
    failures.entry(key).or_insert(Failures::NONE).add(free, now_ms);
}

#[cfg(test)]
mod tests {
    use periapt_host_api::UserName;

    use super::*;

    fn throttle() -> Throttle<UserName> {
        Throttle::of("logins")
    }

    fn attempt(user: &str, last: u8) -> Attempt<UserName> {
        from(user, &format!("192.0.2.{last}"))
    }

    fn from(user: &str, address: &str) -> Attempt<UserName> {
        Attempt { name: user.parse().unwrap(), network: Network::of(address.parse().unwrap()) }
    }

    #[test]
    fn failures_cost_growing_waits_for_that_user_from_that_network() {
        let throttle = throttle();
        for _ in 0..=FREE_FAILURES {
            throttle.begin(&attempt("jane", 1), 0).unwrap();
        }
        let refusal = throttle.begin(&attempt("jane", 1), 0).unwrap_err();
        assert_eq!(refusal.message, "too many failed logins; try again in 1 s");
        throttle.begin(&attempt("jane", 2), 0).unwrap();
        throttle.begin(&attempt("joe", 1), 0).unwrap();
        throttle.begin(&attempt("jane", 1), 1_000).unwrap();
        let refusal = throttle.begin(&attempt("jane", 1), 1_000).unwrap_err();
        assert_eq!(refusal.message, "too many failed logins; try again in 2 s");
        throttle.begin(&attempt("jane", 1), 1_000 + FORGOTTEN_AFTER_MS + 1).unwrap();
        throttle.begin(&attempt("jane", 1), 1_000 + FORGOTTEN_AFTER_MS + 1).unwrap();
    }

    #[test]
    fn further_ipv6_addresses_of_one_network_give_no_further_guesses() {
        let throttle = throttle();
        for number in 0..=FREE_FAILURES {
            throttle.begin(&from("jane", &format!("2001:db8:1:2:{number:x}::1")), 0).unwrap();
        }
        assert!(throttle.begin(&from("jane", "2001:db8:1:2:ffff:ffff:ffff:ffff"), 0).is_err());
        throttle.begin(&from("jane", "2001:db8:1:3::1"), 0).unwrap();
    }

    #[test]
    fn a_mapped_ipv4_address_counts_as_the_ipv4_address() {
        let throttle = throttle();
        for _ in 0..=FREE_FAILURES {
            throttle.begin(&attempt("jane", 1), 0).unwrap();
        }
        assert!(throttle.begin(&from("jane", "::ffff:192.0.2.1"), 0).is_err());
        throttle.begin(&from("jane", "::ffff:192.0.2.2"), 0).unwrap();
    }

    #[test]
    fn a_login_forgets_the_users_failures() {
        let throttle = throttle();
        for _ in 0..100 {
            for _ in 0..FREE_FAILURES {
                throttle.begin(&attempt("jane", 1), 0).unwrap();
                throttle.succeeded(&attempt("jane", 1));
            }
        }
    }

    #[test]
    fn a_network_that_tries_many_users_waits_too_and_no_number_of_them_grows_without_bound() {
        let throttle = throttle();
        let guesses = |number: u32| attempt(&format!("user{number}"), 7);
        for number in 0..=FREE_FAILURES_OF_NETWORK {
            throttle.begin(&guesses(number), 0).unwrap();
        }
        assert!(throttle.begin(&guesses(99), 0).is_err());
        for number in 0..2 * u32::try_from(MAX_REMEMBERED).unwrap() {
            let address = std::net::Ipv4Addr::from(number.to_be_bytes());
            throttle.begin(&from("jane", &address.to_string()), 0).unwrap();
        }
        let remembered = throttle.remembered.lock();
        assert!(remembered.of_name.len() <= MAX_REMEMBERED && remembered.of_network.len() <= MAX_REMEMBERED);
    }
}
