//! The lengths of faults that last.

use std::{
    env,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// The lengths in a short run, in seconds and in turn: longer than the lease of the controller that leads, and one that is
/// longer than the time for which requests wait.
const SHORT: [u64; 8] = [5, 12, 5, 5, 5, 5, 5, 5];

/// The least and the most seconds in a long run: longer than the lease of a unit that leads, too.
const LONG: (u64, u64) = (5, 90);

/// One fault of so many has a length that is drawn in a long run; the others are as short as can be.
const DRAWN: u64 = 4;

/// The lengths of the faults of a run.
#[derive(Debug)]
pub(crate) enum Lengths {
    /// They are the same in each run. The number of those that were taken.
    Short(usize),
    /// A seed decides.
    Drawn(Random),
}

/// A sequence of numbers that a seed determines (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

impl Lengths {
    /// Returns the lengths of a run of so many rounds, of which a usual run has some. Prints the seed of a long run;
    /// `PERIAPT_FAULT_SEED` repeats it.
    #[expect(clippy::print_stdout, reason = "a seed that nobody sees repeats nothing")]
    pub(crate) fn of(rounds: usize, usual: usize) -> anyhow::Result<Self> {
        if rounds <= usual {
            return Ok(Self::Short(0));
        }
        let seed = match env::var("PERIAPT_FAULT_SEED") {
            Ok(seed) => seed.parse()?,
            Err(_) => u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos()),
        };
        println!("PERIAPT_FAULT_SEED={seed} PERIAPT_FAULT_ROUNDS={rounds}");
        Ok(Self::Drawn(Random(seed)))
    }

    /// Returns the length of the next fault that lasts.
    pub(crate) fn take(&mut self) -> Duration {
        let seconds = match self {
            Self::Short(taken) => {
                let length = SHORT.get(*taken % SHORT.len()).copied();
                *taken += 1;
                length.unwrap_or(LONG.0)
            }
            Self::Drawn(random) => match random.next() % DRAWN {
                0 => LONG.0 + random.next() % (LONG.1 - LONG.0 + 1),
                _ => LONG.0,
            },
        };
        Duration::from_secs(seconds)
    }
}

#[test]
fn a_seed_draws_the_same_lengths_from_five_to_ninety_seconds() {
    let drawn = |seed| {
        let mut lengths = Lengths::Drawn(Random(seed));
        (0..1_000).map(|_| lengths.take().as_secs()).collect::<Vec<_>>()
    };
    let lengths = drawn(7);
    assert_eq!(lengths, drawn(7));
    assert_ne!(lengths, drawn(8));
    assert!(lengths.iter().all(|length| (5..=90).contains(length)));
    for tens in 1..9 {
        assert!(lengths.iter().any(|length| length / 10 == tens), "none of {tens}0 to {tens}9 s");
    }
}
