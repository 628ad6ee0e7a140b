//! Byte ranges of blobs (RFC 9110, section 14).

use std::ops::Range;

/// Which part of a blob is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All of it: nothing else was asked for, or what nobody must understand.
    Whole,
    /// A part that is there.
    Part(Range<u64>),
    /// A part that lies outside.
    Outside,
}

/// Reads a `Range` header for a blob of some size. Several ranges at a time are answered with the whole.
pub(crate) fn wanted(header: Option<&str>, size: u64) -> Wanted {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return Wanted::Whole;
    };
    let Some((first, last)) = spec.split_once('-') else { return Wanted::Whole };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    match (number(first), number(last)) {
        (Some(first), _) if last.is_empty() => part(first, size, size),
        (Some(first), Some(last)) if first <= last => part(first, last.saturating_add(1), size),
        (None, Some(count)) if first.is_empty() => part(size.saturating_sub(count), size, size),
        _ => Wanted::Whole,
    }
}

fn part(start: u64, end: u64, size: u64) -> Wanted {
    let end = end.min(size);
    match start < end {
        true => Wanted::Part(start..end),
        false => Wanted::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        for (header, expected) in [
            ("bytes=0-4", Wanted::Part(0..5)),
            ("bytes=2-", Wanted::Part(2..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-99", Wanted::Part(0..10)),
            ("bytes=8-99", Wanted::Part(8..10)),
            ("bytes=9-18446744073709551615", Wanted::Part(9..10)),
            ("bytes=10-", Wanted::Outside),
            ("bytes=-0", Wanted::Outside),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
            ("lines=1-2", Wanted::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), Wanted::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), Wanted::Outside);
    }
}
