//! The lines that tell how far many seeds are.

use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::Instant,
};

/// The number of seeds below which nothing is told: a test takes some seconds.
const FEW: u64 = 100;

/// The number of lines that tell of all seeds.
const LINES: u64 = 50;

/// The progress of some seeds.
pub(super) struct Progress {
    all: u64,
    /// The number of seeds from which on the next line is told.
    next: AtomicU64,
    began: Instant,
}

impl Progress {
    pub(super) fn of(all: u64) -> Self {
        Self { all, next: AtomicU64::new(step(all)), began: Instant::now() }
    }

    /// Tells that so many seeds hold, if a line is due.
    #[expect(clippy::print_stdout, reason = "who runs many seeds reads how far they are")]
    pub(super) fn tell(&self, done: u64) {
        if let Some(line) = self.line(done, self.began.elapsed().as_secs()) {
            println!("{line}");
        }
    }

    fn line(&self, done: u64, seconds: u64) -> Option<String> {
        if self.all < FEW || done >= self.all {
            return None;
        }
        let next = self.next.load(Ordering::Relaxed);
        if done < next {
            return None;
        }
        let later = done + step(self.all);
        // Another thread may tell the line.
        self.next.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        let left = seconds * (self.all - done) / done.max(1);
        Some(format!("{done} of {} seeds hold after {seconds} s, {left} s are left", self.all))
    }
}

/// Returns the number of seeds from one line to the next.
fn step(all: u64) -> u64 {
    (all / LINES).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_seeds_tell_fifty_times_how_far_they_are_and_few_do_not() {
        let lines = |all| {
            let progress = Progress::of(all);
            (1..=all).filter_map(|done| progress.line(done, done)).collect::<Vec<_>>()
        };
        assert!(lines(99).is_empty());
        let many = lines(1_000);
        assert_eq!(many.len(), 49);
        assert_eq!(many[0], "20 of 1000 seeds hold after 20 s, 980 s are left");
    }
}
