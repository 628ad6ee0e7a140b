//! The choices of a simulation, all of which follow from its seed.

use std::{ops::Range, time::Duration};

use parking_lot::Mutex;
use periapt_controller::RandomSource;

/// A source of choices: SplitMix64.
#[derive(Debug, Clone)]
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a source of its own for one part, so that the parts do not change each other's choices.
    pub(super) fn part(&mut self) -> Self {
        Self(self.draw())
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.draw() % bound as u64).unwrap()
    }

    pub(super) fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    pub(super) fn millis(&mut self, range: Range<u64>) -> Duration {
        Duration::from_millis(range.start + self.draw() % (range.end - range.start))
    }

    pub(super) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns the numbers below a bound in some order.
    pub(super) fn order(&mut self, bound: usize) -> Vec<usize> {
        let mut order: Vec<_> = (0..bound).collect();
        for last in (1..bound).rev() {
            order.swap(last, self.below(last + 1));
        }
        order
    }
}

/// A controller's source of randomness.
pub(super) struct Seeds(Mutex<Chance>);

impl Seeds {
    pub(super) fn new(chance: Chance) -> Self {
        Self(Mutex::new(chance))
    }
}

impl RandomSource for Seeds {
    fn seed(&self) -> [u8; 16] {
        let mut chance = self.0.lock();
        let (high, low) = (u128::from(chance.draw()), u128::from(chance.draw()));
        (high << 64 | low).to_le_bytes()
    }
}
