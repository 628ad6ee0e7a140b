//! Sizes as people write them: `500M`, `1.5G`, `2T`.

use super::MAX_SIZE;

/// Why a text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// Not a number with a unit.
    #[error("{0:?} is no size: a number with M, G, T or P is expected, such as 512M or 1.5G")]
    Invalid(String),
    /// Nothing, or more than there can be.
    #[error("{0:?} is out of range: at least 1M and at most 1P are possible")]
    Range(String),
}

/// Reads a size, in mebibytes, rounded up. Without a unit it is one in mebibytes already.
///
/// # Errors
/// [`SizeError`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let invalid = || SizeError::Invalid(text.chars().take(64).collect());
    let range = || SizeError::Range(text.chars().take(64).collect());
    // `GiB` and `GB` say the same as `G`.
    let bare = text.strip_suffix("iB").or_else(|| text.strip_suffix('B')).unwrap_or(text);
    let (number, shift) = match bare.chars().last() {
        Some('M') => (bare.strip_suffix('M'), 0),
        Some('G') => (bare.strip_suffix('G'), 10),
        Some('T') => (bare.strip_suffix('T'), 20),
        Some('P') => (bare.strip_suffix('P'), 30),
        _ if bare.len() == text.len() => (Some(bare), 0),
        _ => (None, 0),
    };
    let (whole, part) = number.map_or(("", ""), |number| number.split_once('.').unwrap_or((number, "")));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(invalid());
    }
    let whole: u64 = whole.parse().map_err(|_| range())?;
    // Nine digits at most, so the product below fits.
    let scale = 10_u128.pow(u32::try_from(part.len()).map_err(|_| invalid())?);
    let part: u128 = if part.is_empty() { 0 } else { part.parse().map_err(|_| invalid())? };
    let scaled = (u128::from(whole) * scale + part) << shift;
    let size = u64::try_from(scaled.div_ceil(scale)).map_err(|_| range())?;
    if (1..=MAX_SIZE).contains(&size) { Ok(size) } else { Err(range()) }
}

/// A size for people: `512MiB`, `1.5GiB`.
#[expect(clippy::cast_precision_loss, reason = "a size has far fewer than 52 bits")]
pub fn mebibytes(size: u64) -> String {
    match size {
        0..0x400 => format!("{size}MiB"),
        0x400..0x10_0000 => format!("{:.1}GiB", size as f64 / 1024.0),
        _ => format!("{:.1}TiB", size as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_rounded_up_to_mebibytes() {
        for (text, size) in [
            ("1", 1),
            ("512M", 512),
            ("1G", 1024),
            ("1GiB", 1024),
            ("1.5G", 1536),
            ("0.0001G", 1),
            ("2T", 2 << 20),
            ("1P", 1 << 30),
        ] {
            assert_eq!(parse_size(text), Ok(size), "{text}");
        }
    }

    #[test]
    fn what_is_no_size_or_out_of_range_is_refused() {
        for text in
            ["", "G", "1K", "-1G", "1.2.3G", ".5G", "1e3", "0", "0G", "2P", "99999999999999999999", "1iB"]
        {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!([100, 1024, 1536, 2 << 20].map(mebibytes), ["100MiB", "1.0GiB", "1.5GiB", "2.0TiB"]);
    }
}
