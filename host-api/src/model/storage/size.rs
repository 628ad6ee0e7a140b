//! Sizes as operators write them: `500M`, `1.5G`, `2T`.

use super::MAX_SIZE;

/// A text that is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SizeError {
    /// The text is no number with a unit.
    #[error("invalid size {0:?}: a number with M, G, T or P is expected, such as 512M or 1.5G")]
    Invalid(String),
    /// The size is zero or too large.
    #[error("{0:?} is out of range: at least 1M and at most 1P are possible")]
    Range(String),
}

/// The units of storage, as powers of two over a mebibyte.
const OF_MEBIBYTES: &[(&str, u32)] = &[("M", 0), ("G", 10), ("T", 20), ("P", 30)];

/// The units of memory and files, as powers of two over a byte.
const OF_BYTES: &[(&str, u32)] = &[("B", 0), ("K", 10), ("M", 20), ("G", 30), ("T", 40), ("P", 50)];

/// Parses a size into mebibytes, rounded up. A number without a unit is in mebibytes.
///
/// # Errors
/// [`SizeError`].
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let short = || text.chars().take(64).collect();
    let size = match text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        true => scaled(text, 0),
        false => in_units(text, OF_MEBIBYTES),
    };
    let size = size.ok_or_else(|| SizeError::Invalid(short()))?;
    u64::try_from(size)
        .ok()
        .filter(|size| (1..=MAX_SIZE).contains(size))
        .ok_or_else(|| SizeError::Range(short()))
}

/// Parses a size into bytes, rounded up: `100B`, `512K`, `1.5G`. A number needs a unit, except `0`.
pub fn parse_bytes(text: &str) -> Option<u64> {
    let size = if text == "0" { Some(0) } else { in_units(text, OF_BYTES) };
    size.and_then(|size| u64::try_from(size).ok())
}

/// Parses a number with a unit. `GiB` and `GB` mean the same as `G`; the byte is `B` alone.
fn in_units(text: &str, units: &[(&str, u32)]) -> Option<u128> {
    let (number, unit) = text.split_at(text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?);
    let bare =
        unit.strip_suffix("iB").or_else(|| unit.strip_suffix('B')).filter(|bare| !matches!(*bare, "" | "B"));
    let (_, shift) = units.iter().find(|(name, _)| *name == bare.unwrap_or(unit))?;
    scaled(number, *shift)
}

/// Multiplies a number, with a fraction or without, by a power of two, and rounds up. Saturates at the largest
/// number.
fn scaled(number: &str, shift: u32) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 9 {
        return None;
    }
    let Ok(whole) = whole.parse::<u64>() else { return Some(u128::MAX) };
    let scale = 10_u128.pow(u32::try_from(part.len()).ok()?);
    let part: u128 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let exact = (u128::from(whole) * scale + part).checked_mul(1 << shift);
    Some(exact.map_or(u128::MAX, |exact| exact.div_ceil(scale)))
}

/// Writes a size for people: `512MiB`, `1.5GiB`.
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
    fn bytes_need_their_unit_but_for_none() {
        for (text, size) in [
            ("0", Some(0)),
            ("100B", Some(100)),
            ("512K", Some(512 << 10)),
            ("1.5KiB", Some(1536)),
            ("1GB", Some(1 << 30)),
            ("0.1B", Some(1)),
            ("512", None),
            ("", None),
            ("B", None),
            ("-1K", None),
            ("1BB", None),
            ("16384P", None),
            ("18446744073709551615.5P", None),
        ] {
            assert_eq!(parse_bytes(text), size, "{text}");
        }
    }

    #[test]
    fn sizes_are_shown_in_the_unit_that_fits() {
        assert_eq!([100, 1024, 1536, 2 << 20].map(mebibytes), ["100MiB", "1.0GiB", "1.5GiB", "2.0TiB"]);
    }
}
