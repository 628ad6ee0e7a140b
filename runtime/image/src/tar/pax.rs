//! Records of extended headers in pax's form: `LENGTH KEY=VALUE\n`.

use super::TarError;

/// A key with its value.
pub(super) type Record<'a> = (&'a str, &'a [u8]);

/// Returns the records of an extended header.
pub(super) fn records(content: &[u8]) -> Result<Vec<Record<'_>>, TarError> {
    let mut records = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let (record, after) = record(rest).ok_or(TarError::Stream("an extended header is damaged"))?;
        records.push(record);
        rest = after;
    }
    Ok(records)
}

/// Returns the first record, and what follows it.
fn record(content: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let space = content.iter().take(12).position(|byte| *byte == b' ')?;
    let (length, _) = content.split_at_checked(space)?;
    if !length.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let length: usize = std::str::from_utf8(length).ok()?.parse().ok()?;
    let (record, rest) = content.split_at_checked(length)?;
    let body = record.get(space + 1..)?.strip_suffix(b"\n")?;
    let equals = body.iter().position(|byte| *byte == b'=')?;
    let key = std::str::from_utf8(body.get(..equals)?).ok()?;
    Some(((key, body.get(equals + 1..)?), rest))
}

/// Refuses a header for all following entries, unless it is a comment. Programs disagree on anything else in it.
pub(super) fn check_global(content: &[u8]) -> Result<(), TarError> {
    match records(content)?.iter().all(|(key, _)| *key == "comment") {
        true => Ok(()),
        false => Err(TarError::Stream("a global extended header has more than a comment")),
    }
}

/// Returns the seconds and nanoseconds of a time, such as `1700000000.5`. Nanoseconds count forwards.
pub(super) fn time(value: &str) -> Option<(i64, u32)> {
    let (seconds, fraction) = value.split_once('.').unwrap_or((value, ""));
    if !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let nanos: u32 = digits.parse().ok()?;
    let whole: i64 = seconds.parse().ok()?;
    match seconds.starts_with('-') && nanos > 0 {
        true => Some((whole.checked_sub(1)?, 1_000_000_000 - nanos)),
        false => Some((whole, nanos)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_say_their_length() {
        assert_eq!(records(b"11 path=ab\n8 a==b\n").ok(), None);
        assert_eq!(records(b"11 path=ab\n7 a==b\n").unwrap(), [("path", &b"ab"[..]), ("a", b"=b")]);
        for damaged in
            [&b"5 a=b"[..], b"0 a=b\n", b"99 a=b\n", b"x a=b\n", b"6 ab\n\n ", b" a=b\n", b"+6 a=b\n"]
        {
            assert!(records(damaged).is_err(), "{damaged:?}");
        }
    }

    #[test]
    fn times_have_fractions_and_may_lie_before_1970() {
        for (text, expected) in [
            ("5", Some((5, 0))),
            ("5.25", Some((5, 250_000_000))),
            ("-1.5", Some((-2, 500_000_000))),
            ("5.1234567891", Some((5, 123_456_789))),
            ("x", None),
            ("5.x", None),
        ] {
            assert_eq!(time(text), expected, "{text}");
        }
    }
}
