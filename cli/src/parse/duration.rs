//! Times as people write them: `30s`, `5m`, `1h30m`, `500ms`; a bare number is seconds.

use std::time::Duration;

use jiff::SignedDuration;

/// Reads one that is not negative.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Ok(Duration::from_secs(seconds));
    }
    let wrong = || format!("{text:?} is no time: write 30s, 5m, 1h30m or 500ms");
    let duration: SignedDuration = text.parse().map_err(|_| wrong())?;
    Duration::try_from(duration).map_err(|_| wrong())
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
