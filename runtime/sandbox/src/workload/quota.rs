//! The share of the processors that a workload may use.
//!
//! The guests of a process compute under its engine's epoch. At each tick, and before a request, they ask how much CPU
//! time the process has used, its own work for them included, and wait until its share has caught up. So the share
//! holds on every host, also where the process may make no cgroup.

use std::time::Duration;

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

/// The time whose share a process may use at once: the period of the kernel's own quotas.
const PERIOD: Duration = Duration::from_millis(100);

/// The longest wait of a guest before it asks again.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// The quota of CPU time of this process.
#[derive(Debug)]
pub(super) struct CpuQuota {
    /// The share, in thousandths of one processor.
    thousandths: u32,
    account: Mutex<Account>,
}

impl CpuQuota {
    /// Creates a quota of a share in thousandths of one processor, at least one.
    pub(super) fn new(thousandths: u32) -> Self {
        Self { thousandths: thousandths.max(1), account: Mutex::default() }
    }

    /// Returns the time for which a guest must wait; none if the process is within its share.
    pub(super) fn wait(&self) -> Option<Duration> {
        self.account.lock().wait(self.thousandths, now(), used())
    }
}

/// The CPU time that a process has left, at its last look.
#[derive(Debug, Default)]
struct Account {
    /// The time, and the CPU time that the process had used; none before the first look, until which nothing is counted.
    seen: Option<(Duration, Duration)>,
    /// The rest of the share, in nanoseconds. It is negative if more was used.
    left: i128,
}

impl Account {
    fn wait(&mut self, thousandths: u32, now: Duration, used: Duration) -> Option<Duration> {
        let share = |time: Duration| nanoseconds(time) * i128::from(thousandths) / 1_000;
        let (before, used_before) = self.seen.replace((now, used)).unwrap_or((now, used));
        let earned = share(now.saturating_sub(before));
        let spent = nanoseconds(used.saturating_sub(used_before));
        self.left = (self.left + earned - spent).min(share(PERIOD));
        if self.left >= 0 {
            return None;
        }
        let until_even = -self.left * 1_000 / i128::from(thousandths);
        Some(u64::try_from(until_even).map_or(LONGEST_WAIT, Duration::from_nanos).min(LONGEST_WAIT))
    }
}

fn nanoseconds(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).unwrap_or(i128::MAX / 1_000_000)
}

/// Returns the time of the host's clock.
fn now() -> Duration {
    read(ClockId::Monotonic)
}

/// Returns the CPU time of all threads of this process.
fn used() -> Duration {
    read(ClockId::ProcessCPUTime)
}

fn read(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: u32 = 500;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn a_process_waits_once_it_has_used_more_than_its_share() {
        let mut account = Account::default();
        assert_eq!(account.wait(HALF, ms(1_000), ms(700)), None, "what it used before is not counted");
        assert_eq!(account.wait(HALF, ms(1_010), ms(705)), None);
        assert_eq!(account.wait(HALF, ms(1_020), ms(715)), Some(ms(10)));
        assert_eq!(account.wait(HALF, ms(1_030), ms(715)), None);
        assert_eq!(account.wait(HALF, ms(1_031), ms(916)), Some(ms(401)));
        assert_eq!(account.wait(HALF, ms(1_032), ms(1_916)), Some(LONGEST_WAIT));
    }

    #[test]
    fn an_idle_process_saves_up_the_share_of_one_period() {
        let mut account = Account::default();
        assert_eq!(account.wait(HALF, ms(0), ms(0)), None);
        assert_eq!(account.wait(HALF, ms(60_000), ms(0)), None);
        assert_eq!(account.wait(HALF, ms(60_000), ms(50)), None);
        assert_eq!(account.wait(HALF, ms(60_000), ms(51)), Some(ms(2)));
    }

    #[test]
    fn over_a_long_time_each_share_is_what_is_used() {
        for thousandths in [1, 30, HALF, 2_500] {
            let (mut account, mut now, mut used) = (Account::default(), ms(0), ms(0));
            while now < ms(600_000) {
                match account.wait(thousandths, now, used) {
                    Some(wait) => now += wait.max(ms(1)),
                    // Four guests compute for a tick each.
                    None => (now, used) = (now + ms(5), used + ms(20)),
                }
            }
            let share = now.as_millis() * u128::from(thousandths) / 1_000;
            let over = used.as_millis().saturating_sub(share);
            assert!(
                over <= 20 + share / 100 + u128::from(thousandths) / 10,
                "{thousandths}: {over} ms over {share}"
            );
            assert!(
                used.as_millis() + 100 >= share * 98 / 100,
                "{thousandths}: {} of {share}",
                used.as_millis()
            );
        }
    }

    #[test]
    fn clocks_are_those_of_the_process() {
        let quota = CpuQuota::new(1);
        assert_eq!(quota.wait(), None);
        let before = used();
        while used() < before + ms(5) {
            std::hint::black_box(before);
        }
        assert!(quota.wait().is_some(), "5 ms are more than a thousandth");
    }
}
