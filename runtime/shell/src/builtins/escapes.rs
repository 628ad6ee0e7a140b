//! Backslash escapes of `echo -e` and `printf`.

use std::ops::ControlFlow;

/// The context of an escape. Octal numbers differ in each, and `\c` does not end a format of `printf`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeContext {
    /// A word of `echo -e`: `\0NNN`.
    Echo,
    /// The format of `printf`: `\NNN`.
    Format,
    /// An argument of `printf` for `%b`: either form.
    Argument,
}

/// Writes a text with its escapes replaced. A `\c` breaks off.
pub(super) fn unescape(text: &str, context: EscapeContext, bytes: &mut Vec<u8>) -> ControlFlow<()> {
    let mut rest = text;
    while let Some((plain, behind)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        match escape(behind, context, bytes) {
            Some(behind) => rest = behind,
            None => return ControlFlow::Break(()),
        }
    }
    bytes.extend_from_slice(rest.as_bytes());
    ControlFlow::Continue(())
}

/// Writes the escape after a backslash, and returns the rest of the text. None after a `\c`.
pub(super) fn escape<'t>(text: &'t str, context: EscapeContext, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let mut characters = text.chars();
    let Some(kind) = characters.next() else {
        bytes.push(b'\\');
        return Some("");
    };
    let behind = characters.as_str();
    let numbered = match kind {
        'c' if context != EscapeContext::Format => return None,
        '0' if context != EscapeContext::Format => Some(number(behind, 8, 3).unwrap_or((0, behind))),
        '0'..='7' if context != EscapeContext::Echo => number(text, 8, 3),
        'x' => number(behind, 16, 2),
        'u' => number(behind, 16, 4),
        'U' => number(behind, 16, 8),
        _ => None,
    };
    match (numbered, simple(kind, context)) {
        (Some((number, behind)), _) => {
            match kind {
                'u' | 'U' => {
                    let character = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                    bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                // Three octal digits may exceed a byte: the lowest eight bits count.
                _ => bytes.push(number.to_le_bytes()[0]),
            }
            Some(behind)
        }
        (None, Some(byte)) => {
            bytes.push(byte);
            Some(behind)
        }
        (None, None) => {
            bytes.push(b'\\');
            bytes.extend_from_slice(kind.encode_utf8(&mut [0; 4]).as_bytes());
            Some(behind)
        }
    }
}

/// Returns the byte of a one-character escape.
fn simple(kind: char, context: EscapeContext) -> Option<u8> {
    Some(match kind {
        'n' => b'\n',
        't' => b'\t',
        'r' => b'\r',
        'a' => 0x7,
        'b' => 0x8,
        'e' => 0x1b,
        'f' => 0xc,
        'v' => 0xb,
        '\\' => b'\\',
        '"' if context == EscapeContext::Format => b'"',
        '\'' if context == EscapeContext::Format => b'\'',
        '?' if context == EscapeContext::Format => b'?',
        _ => return None,
    })
}

/// Parses a number of at most `most` digits at the beginning of a text, and returns it with the rest. None without
/// digits.
fn number(text: &str, radix: u32, most: usize) -> Option<(u32, &str)> {
    let digits = text.chars().take(most).take_while(|digit| digit.is_digit(radix)).count();
    let (number, behind) = text.split_at_checked(digits)?;
    Some((u32::from_str_radix(number, radix).ok()?, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_reads_numbers_in_its_own_way() {
        for (context, text, expected) in [
            (EscapeContext::Echo, r"\101|\0101|\x41|\0377|\xe9|\c|no", b"\\101|A|A|\xff|\xe9|".as_slice()),
            (EscapeContext::Echo, r#"\u00e9\U1F600|\q|\"|\?|\8|\0"#, "é😀|\\q|\\\"|\\?|\\8|\0".as_bytes()),
            (EscapeContext::Format, r"\0101|\101|\1011|\400\x1234", b"\x081|A|A1|\0\x1234"),
            (
                EscapeContext::Format,
                r#"\e\a\b\f\n\r\t\v\\\"\?\'\q\8\xzz\u\0\c"#,
                b"\x1b\x07\x08\x0c\n\r\t\x0b\\\"?'\\q\\8\\xzz\\u\0\\c",
            ),
            (EscapeContext::Argument, r"\0101|\101|\1011|\x41|\u00e9", "A|A|A1|A|é".as_bytes()),
            (EscapeContext::Argument, r#"\e\\\"\?\'\q\0400\04001\"#, b"\x1b\\\\\"\\?\\'\\q\0\x001\\"),
            (EscapeContext::Argument, r"a\cb", b"a"),
            (EscapeContext::Format, r"\ud800\U00110000", "\u{fffd}\u{fffd}".as_bytes()),
        ] {
            let mut bytes = Vec::new();
            let ended = unescape(text, context, &mut bytes);
            assert_eq!(bytes, expected, "{context:?}: {text}");
            assert_eq!(ended.is_break(), context != EscapeContext::Format && text.contains(r"\c"), "{text}");
        }
    }
}
