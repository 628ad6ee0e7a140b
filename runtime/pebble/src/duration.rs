//! Durations as Go writes them: `1m30s`, `50ms`, `168h0m0s`.

use std::{fmt, str::FromStr, time::Duration};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// A duration that is written as Go writes it. It is never negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct GoDuration(pub Duration);

/// The longest duration, about 292 years: what a signed count of nanoseconds holds.
const LONGEST: u128 = i64::MAX as u128;

/// The most bytes of a duration's text: all units with long fractions fit.
const MAX_TEXT: usize = 100;

impl FromStr for GoDuration {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).ok_or_else(|| {
            let shown: String = text.chars().take(MAX_TEXT).collect();
            format!("{shown:?} is no duration such as 50ms, 1.5s or 1m30s")
        })
    }
}

fn parse(text: &str) -> Option<Duration> {
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() || text.len() > MAX_TEXT {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters =
            after.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(after.len());
        let (unit, next) = after.split_at(letters);
        total = total.checked_add(nanoseconds(number, unit)?)?;
        rest = next;
    }
    (total <= LONGEST).then(|| {
        let (seconds, nanoseconds) = (total / 1_000_000_000, total % 1_000_000_000);
        Duration::new(u64::try_from(seconds).unwrap_or(u64::MAX), u32::try_from(nanoseconds).unwrap_or(0))
    })
}

/// Returns the nanoseconds of a number with an optional fraction, in a unit.
fn nanoseconds(number: &str, unit: &str) -> Option<u128> {
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let mut total = whole.checked_mul(unit)?;
    let mut scale = unit;
    for digit in fraction.chars() {
        scale /= 10;
        total = total.checked_add(scale * u128::from(digit.to_digit(10)?))?;
    }
    Some(total)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, nanoseconds) = (self.0.as_secs(), self.0.subsec_nanos());
        if seconds == 0 {
            let (whole, part, unit) = match nanoseconds {
                0 => return to.write_str("0s"),
                1..1_000 => (nanoseconds, 0, "ns"),
                1_000..1_000_000 => (nanoseconds / 1_000, nanoseconds % 1_000 * 1_000_000, "µs"),
                _ => (nanoseconds / 1_000_000, nanoseconds % 1_000_000 * 1_000, "ms"),
            };
            return write!(to, "{whole}{}{unit}", fraction(part));
        }
        let (hours, minutes) = (seconds / 3_600, seconds / 60 % 60);
        if hours > 0 {
            write!(to, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(to, "{minutes}m")?;
        }
        write!(to, "{}{}s", seconds % 60, fraction(nanoseconds))
    }
}

/// Formats billionths as a fraction without trailing zeros.
fn fraction(billionths: u32) -> String {
    match billionths {
        0 => String::new(),
        _ => format!(".{billionths:09}").trim_end_matches('0').to_owned(),
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

/// Reads an optional duration; an empty text means none.
pub(crate) fn optional<'de, D: Deserializer<'de>>(from: D) -> Result<Option<GoDuration>, D::Error> {
    match Option::<String>::deserialize(from)?.as_deref() {
        None | Some("") => Ok(None),
        Some(text) => text.parse().map(Some).map_err(D::Error::custom),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_as_go_does() {
        for (text, nanoseconds, shown) in [
            ("50ms", 50_000_000, "50ms"),
            ("1.5s", 1_500_000_000, "1.5s"),
            ("1m30s", 90_000_000_000, "1m30s"),
            ("168h", 604_800_000_000_000, "168h0m0s"),
            ("0", 0, "0s"),
            ("100us", 100_000, "100µs"),
            ("4.000s", 4_000_000_000, "4s"),
            (".5s", 500_000_000, "500ms"),
        ] {
            let read: GoDuration = text.parse().unwrap();
            assert_eq!(read.0.as_nanos(), nanoseconds, "{text}");
            assert_eq!(read.to_string(), shown, "{text}");
        }
        for text in ["", "1", "s", "-1s", "1x", "1..5s", "9999999999999h", "1s 2s", "1.s.", "١s"] {
            assert!(text.parse::<GoDuration>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(nanoseconds in 0..i64::MAX as u64) {
            let duration = GoDuration(Duration::from_nanos(nanoseconds));
            prop_assert_eq!(duration.to_string().parse::<GoDuration>(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,40}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
