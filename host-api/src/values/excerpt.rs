//! Excerpts of untrusted texts for errors, bounded in size.

use std::borrow::Cow;

/// The most characters of a name or a value in an error.
const QUOTED: usize = 64;

/// The most characters of an unquoted word in a message: paths, and lists without spaces.
const WORD: usize = 200;

/// The most characters of a whole message.
const MESSAGE: usize = 2_000;

/// The mark at the end of a shortened text.
const MORE: &str = "...";

/// Returns the beginning of a name or a value.
pub fn shortened(text: &str) -> Cow<'_, str> {
    beginning(text, QUOTED)
}

/// Returns a message with its quoted parts and words shortened, and control characters escaped. A part is quoted by
/// double quotes or backticks, and may have any size.
pub fn of_message(message: &str) -> String {
    let mut shown = String::new();
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        // `shown` grows by bounded pieces, so the loop stops close to this bound.
        if shown.len() > MESSAGE * 4 {
            break;
        }
        let length = match first {
            '"' | '`' => quotation(rest, first),
            first if first.is_whitespace() => first.len_utf8(),
            _ => rest
                .find(|other: char| other.is_whitespace() || matches!(other, '"' | '`'))
                .unwrap_or(rest.len()),
        };
        let (piece, after) = rest.split_at(length);
        rest = after;
        match piece.get(1..piece.len().saturating_sub(1)).filter(|_| matches!(first, '"' | '`')) {
            Some(inner) if piece.ends_with(first) => {
                shown.push(first);
                shown.push_str(&shortened(inner));
                shown.push(first);
            }
            // A quotation that is never closed counts as a word.
            _ => shown.push_str(&beginning(piece, WORD)),
        }
    }
    let shown = beginning(&shown, MESSAGE);
    if !shown.contains(char::is_control) {
        return shown.into_owned();
    }
    shown
        .chars()
        .flat_map(|it| if it.is_control() { it.escape_default().collect() } else { vec![it] })
        .collect()
}

/// Returns the length of a quotation with both its marks, or of the whole text if the quotation is not closed.
fn quotation(text: &str, mark: char) -> usize {
    let mut escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' if mark == '"' => escaped = true,
            _ if character == mark => return at + character.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

fn beginning(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(text.get(..end).unwrap_or_default().to_owned() + MORE),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_message_stays_as_it_is() {
        for message in [
            "",
            "invalid type: string \"a b\", expected u32",
            "unknown field `a`, expected one of b, c",
            "ä \" ö",
        ] {
            assert_eq!(of_message(message), message);
        }
    }

    #[test]
    fn what_a_message_quotes_is_shortened_and_what_follows_is_kept() {
        let long = "x y".repeat(100_000);
        let shown = of_message(&format!("invalid type: string {long:?}, expected u32"));
        assert!(
            shown.starts_with("invalid type: string \"x yx y") && shown.ends_with("...\", expected u32"),
            "{shown}"
        );
        assert!(shown.len() < 120, "{shown}");
        let escaped = format!("{:?}", "\"".repeat(1000));
        assert!(of_message(&format!("{escaped}, expected u32")).ends_with("...\", expected u32"));
        let shown = of_message(&format!("duplicate mapping key `{long}` is not allowed"));
        assert!(shown.ends_with("...` is not allowed") && shown.len() < 120, "{shown}");
        let shown = of_message(&format!("the number {} is too large", "9".repeat(500_000)));
        assert!(shown.ends_with("9... is too large") && shown.len() < 250, "{shown}");
    }

    #[test]
    fn nothing_makes_a_message_long() {
        for piece in ["a ", "\"", "`", "\"a\" ", "\u{1f600}", "\n", "\\\""] {
            let shown = of_message(&piece.repeat(500_000));
            assert!(shown.chars().count() <= MESSAGE * 9, "{piece:?}: {}", shown.len());
        }
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(of_message("a\u{1b}[31m \u{9b}b\n\"\u{7}\""), "a\\u{1b}[31m \\u{9b}b\\n\"\\u{7}\"");
    }
}
