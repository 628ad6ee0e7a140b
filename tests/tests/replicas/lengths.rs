//! The lengths of faults that last, and of the pauses between commands.

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

/// The pause between two commands in a long run: several runs share a machine, and the state stays small.
const PAUSE: Duration = Duration::from_millis(600);

/// The lengths of the faults of a run.
#[derive(Debug)]
pub(crate) enum Lengths {
    /// They are the same in each run. The number of those that were taken.
    Short(usize),
    /// A seed decides.
    Drawn {
        /// The seed.
        seed: u64,
        /// The numbers that follow from it.
        random: Random,
    },
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
    /// Returns the lengths of a run of so many rounds, of which a usual run has some. A seed decides in a longer run, and
    /// if `PERIAPT_FAULT_SEED` has one. Prints it, so that the run can be repeated.
    #[expect(clippy::print_stdout, reason = "a seed that nobody sees repeats nothing")]
    pub(crate) fn of(rounds: usize, usual: usize) -> anyhow::Result<Self> {
        let seed = match env::var("PERIAPT_FAULT_SEED") {
            Ok(seed) => seed.parse()?,
            Err(_) if rounds <= usual => return Ok(Self::Short(0)),
            Err(_) => u64::from(SystemTime::now().duration_since(UNIX_EPOCH)?.subsec_nanos()),
        };
        println!("PERIAPT_FAULT_SEED={seed} PERIAPT_FAULT_ROUNDS={rounds}");
        Ok(Self::drawn(seed))
    }

    fn drawn(seed: u64) -> Self {
        Self::Drawn { seed, random: Random(seed) }
    }

    /// Returns the number of the fault, of so many, with which the run begins. So runs of few rounds with seeds that follow
    /// each other have all faults.
    pub(crate) fn first_fault(&self, faults: usize) -> anyhow::Result<usize> {
        match self {
            Self::Short(_) => Ok(0),
            Self::Drawn { seed, .. } => Ok(usize::try_from(*seed)? % faults.max(1)),
        }
    }

    /// Returns the pause of a client between two commands.
    pub(crate) fn pause(&self) -> Duration {
        match self {
            Self::Short(_) => Duration::ZERO,
            Self::Drawn { .. } => PAUSE,
        }
    }

    /// Returns the length of the next fault that lasts.
    pub(crate) fn take(&mut self) -> Duration {
        let seconds = match self {
            Self::Short(taken) => {
                let length = SHORT.get(*taken % SHORT.len()).copied();
                *taken += 1;
                length.unwrap_or(LONG.0)
            }
            Self::Drawn { random, .. } => match random.next() % DRAWN {
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
        let mut lengths = Lengths::drawn(seed);
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

#[test]
fn runs_of_seeds_that_follow_each_other_begin_with_all_faults() -> anyhow::Result<()> {
    let first =
        (20..25).map(|seed| Lengths::drawn(seed).first_fault(5)).collect::<anyhow::Result<Vec<_>>>()?;
    assert_eq!(first, [0, 1, 2, 3, 4]);
    assert_eq!(Lengths::Short(0).first_fault(5)?, 0, "a short run begins with the first");
    Ok(())
}
