//! Rotation policies and expiry times of secrets.

use std::{fmt, str::FromStr};

use jiff::{Span, ToSpan as _, tz::TimeZone};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Timestamp, duration};

/// The rotation policy of a secret.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RotatePolicy {
    /// No rotation.
    #[default]
    Never,
    /// Rotation each hour.
    Hourly,
    /// Rotation each day.
    Daily,
    /// Rotation each week.
    Weekly,
    /// Rotation each month, by the calendar.
    Monthly,
    /// Rotation each three months.
    Quarterly,
    /// Rotation each year.
    Yearly,
}

/// A text that is no policy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("rotate policy {0:?} not valid")]
pub struct PolicyError(String);

impl RotatePolicy {
    const ALL: [Self; 7] =
        [Self::Never, Self::Hourly, Self::Daily, Self::Weekly, Self::Monthly, Self::Quarterly, Self::Yearly];

    /// Returns the name in flags and tables.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Hourly => "hourly",
            Self::Daily => "daily",
            Self::Weekly => "weekly",
            Self::Monthly => "monthly",
            Self::Quarterly => "quarterly",
            Self::Yearly => "yearly",
        }
    }

    /// Returns the time of the next rotation, counted from a time. `None` means never.
    pub fn next(self, from: Timestamp) -> Option<Timestamp> {
        let span: Span = match self {
            Self::Never => return None,
            Self::Hourly => 1.hour(),
            Self::Daily => 1.day(),
            Self::Weekly => 1.week(),
            Self::Monthly => 1.month(),
            Self::Quarterly => 3.months(),
            Self::Yearly => 1.year(),
        };
        // A time past the end of the calendar never comes.
        from.to_zoned(TimeZone::UTC).checked_add(span).ok().map(|zoned| zoned.timestamp())
    }
}

impl fmt::Display for RotatePolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for RotatePolicy {
    type Err = PolicyError;
    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let found = Self::ALL.into_iter().find(|policy| policy.as_str() == text);
        found.ok_or_else(|| PolicyError(text.chars().take(64).collect()))
    }
}

/// A text that is no expiry time. The messages are Juju's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExpireError {
    /// The text is neither a duration nor a time.
    #[error("expire time or duration {0:?} not valid")]
    Invalid(String),
    /// The duration is negative.
    #[error("negative expire duration {0:?} not valid")]
    Negative(String),
}

/// Parses `--expire`: a duration such as `24h` or `1h30m`, counted from `now` (`0` is now, as in Juju), or a time in
/// RFC 3339, with or without a zone (then UTC).
///
/// # Errors
/// [`ExpireError`]
pub fn parse_expire(text: &str, now: Timestamp) -> Result<Timestamp, ExpireError> {
    let wrong = || ExpireError::Invalid(text.chars().take(64).collect());
    if let Ok(duration) = duration::parse(text.strip_prefix('-').unwrap_or(text)) {
        if text.starts_with('-') {
            return Err(ExpireError::Negative(text.to_owned()));
        }
        return now.checked_add(duration).map_err(|_| wrong());
    }
    let zoned = text.parse::<Timestamp>().ok();
    let plain =
        || text.parse::<jiff::civil::DateTime>().ok()?.to_zoned(TimeZone::UTC).ok().map(|it| it.timestamp());
    zoned.or_else(plain).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn rotation_is_due_by_the_calendar() {
        let from = time("2026-01-31T10:00:00Z");
        for (policy, due) in [
            ("hourly", "2026-01-31T11:00:00Z"),
            ("daily", "2026-02-01T10:00:00Z"),
            ("weekly", "2026-02-07T10:00:00Z"),
            ("monthly", "2026-02-28T10:00:00Z"),
            ("quarterly", "2026-04-30T10:00:00Z"),
            ("yearly", "2027-01-31T10:00:00Z"),
        ] {
            assert_eq!(policy.parse::<RotatePolicy>().unwrap().next(from), Some(time(due)), "{policy}");
        }
        assert_eq!(RotatePolicy::Never.next(from), None);
        assert_eq!(RotatePolicy::Yearly.next(Timestamp::MAX), None);
        assert_eq!("foo".parse::<RotatePolicy>().unwrap_err().to_string(), "rotate policy \"foo\" not valid");
    }

    #[test]
    fn expiry_is_a_duration_or_a_time() {
        let now = time("2026-01-01T00:00:00Z");
        for (text, expected) in [
            ("24h", "2026-01-02T00:00:00Z"),
            ("1h30m", "2026-01-01T01:30:00Z"),
            ("1.5h", "2026-01-01T01:30:00Z"),
            ("2026-03-04T05:06:07Z", "2026-03-04T05:06:07Z"),
            ("2026-03-04T05:06:07+01:00", "2026-03-04T04:06:07Z"),
            ("2026-03-04T05:06:07", "2026-03-04T05:06:07Z"),
            ("2026-03-04", "2026-03-04T00:00:00Z"),
        ] {
            assert_eq!(parse_expire(text, now), Ok(time(expected)), "{text}");
        }
        assert_eq!(
            parse_expire("-1h", now).unwrap_err().to_string(),
            "negative expire duration \"-1h\" not valid"
        );
        for text in ["x", "", "12", "h", "1d", "999999999999999h", "1..5h"] {
            assert_eq!(
                parse_expire(text, now).unwrap_err().to_string(),
                format!("expire time or duration {text:?} not valid")
            );
        }
    }
}
