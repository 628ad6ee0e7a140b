//! Random variation of waits, so that many units do not wake at once.

use periapt_host_api::{Timestamp, UnitName, hash};

/// The position of a wait in its range. The caller draws it, because this crate has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Jitter(u16);

/// The upper end of the range, in thousandths.
const WHOLE: u16 = 1000;

impl Jitter {
    /// The middle of the range, which leaves a wait unchanged.
    pub const NONE: Self = Self(WHOLE / 2);
    /// The shortest wait.
    pub const LEAST: Self = Self(0);
    /// The longest wait.
    pub const MOST: Self = Self(WHOLE);

    /// Creates a value from any random number.
    pub fn from_random(number: u64) -> Self {
        let within = number % u64::from(WHOLE + 1);
        Self(u16::try_from(within).unwrap_or(WHOLE))
    }

    /// Returns a value that is fixed for a unit and a time and differs between units, for code without a
    /// drawn value.
    pub(crate) fn of_unit(unit: &UnitName, now: Timestamp) -> Self {
        let digest = hash::of_value(&(unit, now.as_millisecond()));
        Self::from_random(digest.bytes().fold(0, |sum: u64, byte| sum.rotate_left(5) ^ u64::from(byte)))
    }

    /// Returns a wait of `milliseconds`, changed by at most `per_cent` in either direction.
    pub(crate) fn spread(self, milliseconds: u64, per_cent: u64) -> u64 {
        let span = milliseconds.saturating_mul(per_cent) / 100;
        let offset = span.saturating_mul(2).saturating_mul(u64::from(self.0)) / u64::from(WHOLE);
        milliseconds.saturating_sub(span).saturating_add(offset)
    }
}

/// Returns a later time, at most the end of time.
pub(crate) fn later(time: Timestamp, milliseconds: u64) -> Timestamp {
    let milliseconds = i64::try_from(milliseconds).unwrap_or(i64::MAX);
    let later = time.as_millisecond().saturating_add(milliseconds);
    Timestamp::from_millisecond(later).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_moved_either_way_and_no_further() {
        assert_eq!(Jitter::LEAST.spread(1000, 20), 800);
        assert_eq!(Jitter::NONE.spread(1000, 20), 1000);
        assert_eq!(Jitter::MOST.spread(1000, 20), 1200);
        for number in [0, 1, 1000, 1001, u64::MAX] {
            let wait = Jitter::from_random(number).spread(1000, 10);
            assert!((900..=1100).contains(&wait), "{number}: {wait}");
        }
    }

    #[test]
    fn units_get_different_places_in_the_range() {
        let now = Timestamp::UNIX_EPOCH;
        let offsets: std::collections::BTreeSet<_> =
            (0..100).map(|number| Jitter::of_unit(&format!("a/{number}").parse().unwrap(), now)).collect();
        assert!(offsets.len() > 80, "{}", offsets.len());
    }

    #[test]
    fn the_end_of_time_is_not_passed() {
        assert_eq!(later(Timestamp::MAX, 5), Timestamp::MAX);
        assert_eq!(later(Timestamp::UNIX_EPOCH, u64::MAX), Timestamp::MAX);
    }
}
