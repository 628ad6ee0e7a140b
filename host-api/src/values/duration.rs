//! Durations as people and charms write them: in settings, on the command line, in hook tools.

use std::time::Duration;

/// The longest duration, a century: sums with it fit into every clock.
const LONGEST: Duration = Duration::from_secs(3_200_000_000);

/// The units in nanoseconds. Two Unicode letters look like a micro sign, and both are accepted.
const UNITS: [(&str, u64); 8] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ns", 1),
];

/// The number of digits of a fraction that count: those of a nanosecond in an hour.
const FRACTION: usize = 13;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {0:?}: write 30s, 5m, 1h30m or 500ms")]
pub struct DurationError(String);

/// Parses `1h30m`, `1.5h`, `90s`, `500ms` (numbers with units, as Go writes durations), or a bare `0`. At most a
/// century.
///
/// # Errors
/// [`DurationError`], with examples.
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let nanoseconds = if text == "0" { Some(0) } else { nanoseconds(text) };
    let duration = nanoseconds.and_then(|total| u64::try_from(total).ok()).map(Duration::from_nanos);
    let wrong = || DurationError(text.chars().take(64).collect());
    duration.filter(|duration| *duration <= LONGEST).ok_or_else(wrong)
}

/// Parses a duration in whole seconds. Returns `None` for a text with a fraction of a second.
pub fn whole_seconds(text: &str) -> Option<u32> {
    let duration = parse(text).ok()?;
    u32::try_from(duration.as_secs()).ok().filter(|_| duration.subsec_nanos() == 0)
}

fn nanoseconds(text: &str) -> Option<u128> {
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (mut rest, mut total) = (text, 0_u128);
    loop {
        let (number, tail) = rest.split_at(rest.find(|letter| !is_of_number(letter))?);
        let (unit, tail) = tail.split_at(tail.find(is_of_number).unwrap_or(tail.len()));
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total = total.checked_add(scaled(number, *unit)?)?;
        if tail.is_empty() {
            return Some(total);
        }
        rest = tail;
    }
}

/// Multiplies a number, with a fraction or without, by a unit.
fn scaled(number: &str, unit: u64) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !digits(fraction) {
        return None;
    }
    let number = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u64>().ok() };
    let fraction = fraction.get(..FRACTION).unwrap_or(fraction);
    let parts = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let unit = u128::from(unit);
    Some(u128::from(number(whole)?) * unit + u128::from(number(fraction)?) * unit / parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_added_up() {
        for (text, nanoseconds) in [
            ("0", 0),
            ("0s", 0),
            ("90s", 90_000_000_000),
            ("1m30s", 90_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("500ms", 500_000_000),
            ("0.1ms", 100_000),
            ("1us2ns", 1_002),
            ("3\u{b5}s", 3_000),
            ("0.33333333333333333333h", 1_199_999_999_999),
            ("876000h", 3_153_600_000_000_000_000),
        ] {
            assert_eq!(parse(text).map(|it| it.as_nanos()), Ok(nanoseconds), "{text}");
        }
        for bad in [
            "",
            "1",
            "-1s",
            "s",
            ".s",
            "1.2.3s",
            "1x",
            "1h30",
            "1 h",
            "1d",
            "900000h",
            "99999999999999999999s",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
        let error = parse("soon").unwrap_err().to_string();
        assert_eq!(error, "invalid duration \"soon\": write 30s, 5m, 1h30m or 500ms");
    }

    #[test]
    fn whole_seconds_have_no_part_of_one() {
        assert_eq!(["0", "90s", "1.5m"].map(whole_seconds), [Some(0), Some(90), Some(90)]);
        assert_eq!(["500ms", "1.5s", "90", "99999999h"].map(whole_seconds), [None; 4]);
    }
}
