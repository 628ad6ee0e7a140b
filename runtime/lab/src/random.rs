//! Repeatable randomness: all draws of a laboratory come from one printed seed.

/// A stream of random numbers (SplitMix64). Equal seeds give equal streams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RandomNumbers(u64);

impl RandomNumbers {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates another stream. Its draws do not change this one.
    pub(crate) fn split(&mut self) -> Self {
        Self(self.number())
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Draws a number below `count`; 0 if `count` is 0.
    pub fn below(&mut self, count: usize) -> usize {
        let drawn = self.number().checked_rem(count as u64).unwrap_or(0);
        usize::try_from(drawn).unwrap_or(0)
    }

    /// Returns true `times` in a thousand.
    pub fn in_thousand(&mut self, times: u16) -> bool {
        self.number() % 1_000 < u64::from(times)
    }

    /// Draws random bytes.
    pub(crate) fn bytes<const N: usize>(&mut self) -> [u8; N] {
        std::array::from_fn(|_| self.number().to_be_bytes()[0])
    }
}

/// Formats bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_itself_and_seeds_differ() {
        let draw = |seed| {
            (0..5).scan(RandomNumbers::new(seed), |random, _| Some(random.number())).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn what_is_drawn_lies_where_it_should() {
        let mut random = RandomNumbers::new(1);
        let mut seen = [0; 3];
        for _ in 0..300 {
            seen[random.below(3)] += 1;
        }
        assert!(seen.iter().all(|times| *times > 50), "{seen:?}");
        assert_eq!(random.below(0), 0);
        assert!(!random.in_thousand(0) && random.in_thousand(1_000));
    }
}
