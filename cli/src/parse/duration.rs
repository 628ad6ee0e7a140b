//! Durations on a command line: `30s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.

use std::time::Duration;

use periapt_host_api::duration::{self, DurationError};

/// Parses a duration.
pub(crate) fn parse(text: &str) -> Result<Duration, DurationError> {
    match text.parse() {
        Ok(seconds) => Ok(Duration::from_secs(seconds)),
        Err(_) => duration::parse(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_and_bare_numbers_are_seconds() {
        assert_eq!(parse("10"), Ok(Duration::from_secs(10)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        for bad in ["", "-1s", "soon", "1x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
