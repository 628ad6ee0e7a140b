//! The clocks of controllers of one log.

use periapt_host_api::{Timestamp, timing::MAX_CLOCK_DIFFERENCE};

/// Returns how far off a clock is that one of several controllers should not have, such as `70 s behind`; none if it
/// is near enough to the other time.
pub(super) fn clock_difference(own: Timestamp, other: Timestamp) -> Option<String> {
    let difference = own.duration_since(other);
    let direction = if difference.is_negative() { "behind" } else { "ahead of" };
    let is_far = difference.unsigned_abs() > MAX_CLOCK_DIFFERENCE;
    is_far.then(|| format!("{} s {direction}", difference.unsigned_abs().as_secs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_may_be_a_minute_off() {
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(clock_difference(at(1_000), at(1_060)), None);
        assert_eq!(clock_difference(at(1_060), at(1_000)), None);
        assert_eq!(clock_difference(at(1_000), at(1_061)).unwrap(), "61 s behind");
        assert_eq!(clock_difference(at(8_200), at(1_000)).unwrap(), "7200 s ahead of");
    }
}
