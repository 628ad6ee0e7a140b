//! Byte ranges of blobs (RFC 9110, section 14).

use std::ops::Range;

/// The part of a blob that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedRange {
    /// The whole blob: there is no range, or one that a server may ignore.
    Whole,
    /// A part within the blob.
    Part(Range<u64>),
    /// A part outside of the blob.
    Outside,
}

/// Parses a `Range` header for a blob of some size. Several ranges at a time give the whole.
pub(crate) fn wanted(header: Option<&str>, size: u64) -> RequestedRange {
    let Some(spec) = header.and_then(|header| header.trim().strip_prefix("bytes=")) else {
        return RequestedRange::Whole;
    };
    let Some((first, last)) = spec.split_once('-') else { return RequestedRange::Whole };
    let number = |text: &str| match text.bytes().all(|byte| byte.is_ascii_digit()) {
        true => text.parse::<u64>().ok(),
        false => None,
    };
    match (number(first), number(last)) {
        (Some(first), _) if last.is_empty() => part(first, size, size),
        (Some(first), Some(last)) if first <= last => part(first, last.saturating_add(1), size),
        (None, Some(count)) if first.is_empty() => part(size.saturating_sub(count), size, size),
        _ => RequestedRange::Whole,
    }
}

fn part(start: u64, end: u64, size: u64) -> RequestedRange {
    let end = end.min(size);
    match start < end {
        true => RequestedRange::Part(start..end),
        false => RequestedRange::Outside,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_to_what_is_there() {
        for (header, expected) in [
            ("bytes=0-4", RequestedRange::Part(0..5)),
            ("bytes=2-", RequestedRange::Part(2..10)),
            ("bytes=-3", RequestedRange::Part(7..10)),
            ("bytes=-99", RequestedRange::Part(0..10)),
            ("bytes=8-99", RequestedRange::Part(8..10)),
            ("bytes=9-18446744073709551615", RequestedRange::Part(9..10)),
            ("bytes=10-", RequestedRange::Outside),
            ("bytes=-0", RequestedRange::Outside),
            ("bytes=5-4", RequestedRange::Whole),
            ("bytes=0-1,3-4", RequestedRange::Whole),
            ("bytes=+1-2", RequestedRange::Whole),
            ("bytes=-", RequestedRange::Whole),
            ("lines=1-2", RequestedRange::Whole),
        ] {
            assert_eq!(wanted(Some(header), 10), expected, "{header}");
        }
        assert_eq!(wanted(None, 10), RequestedRange::Whole);
        assert_eq!(wanted(Some("bytes=0-"), 0), RequestedRange::Outside);
    }
}
