//! Escapes for characters that are not plain text.
//!
//! Names, messages and values are untrusted. A terminal obeys some characters (clears the screen, changes what it has
//! drawn, answers as if its user had typed), draws others in another order, and leaves others out. People get a code in
//! place of each. Output for programs is escaped only if its format has an escape with the same meaning.

use std::{borrow::Cow, fmt::Write as _, ops::RangeInclusive};

/// Characters that are invisible or reorder the following ones: Unicode's default ignorable characters, and its line
/// and paragraph separators. Variation selectors and the combining grapheme joiner are left out: they belong to the
/// visible character before them.
const HIDDEN: [RangeInclusive<char>; 15] = [
    '\u{ad}'..='\u{ad}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180e}'..='\u{180e}',
    '\u{200b}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{3164}'..='\u{3164}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e00ff}',
];

/// The line break and indentation of continued lines.
const CONTINUED: &str = "\n    ";

fn is_text(c: char) -> bool {
    !c.is_control() && !HIDDEN.iter().any(|range| range.contains(&c))
}

/// Adds the code of a character, as YAML and Python write it.
fn push_code(text: &mut String, c: char) {
    let code = u32::from(c);
    // Writing to a String cannot fail.
    let _ = match code {
        0..=0xff => write!(text, "\\x{code:02x}"),
        0x100..=0xffff => write!(text, "\\u{code:04x}"),
        _ => write!(text, "\\U{code:08x}"),
    };
}

/// Escapes an untrusted text for people. Line breaks and tabs stay.
pub(crate) fn escaped(text: &str) -> Cow<'_, str> {
    if text.chars().all(|c| is_text(c) || matches!(c, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\n' | '\t' => shown.push(c),
            // A line break of other systems.
            '\r' if rest.peek() == Some(&'\n') => shown.push(c),
            c if is_text(c) => shown.push(c),
            c => push_code(&mut shown, c),
        }
    }
    Cow::Owned(shown)
}

/// Escapes a text on one line.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().all(is_text) {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace("\r\n", " ").replace(['\n', '\r', '\t'], " ");
    Cow::Owned(escaped(&spaced).into_owned())
}

/// Escapes a line of a list or a log. Continued lines are indented, so that they cannot pass for lines of their own.
pub(crate) fn continued(text: &str) -> String {
    let lines = text.trim_end_matches(['\r', '\n']);
    escaped(lines).replace("\r\n", "\n").replace('\n', CONTINUED)
}

/// Escapes a line of a log, and keeps its writer's colours. No other control sequence passes.
pub(super) fn continued_in_color(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('\u{1b}') {
        let (before, from) = rest.split_at(at);
        let style = style_at_start(from);
        let (style, after) = from.split_at(style.len());
        shown.push_str(&continued(before));
        shown.push_str(style);
        rest = match style.is_empty() {
            true => {
                push_code(&mut shown, '\u{1b}');
                after.get(1..).unwrap_or_default()
            }
            false => after,
        };
    }
    shown.push_str(&continued(rest));
    shown
}

/// Returns the sequence `ESC [ ... m` at the beginning of a text, or an empty text.
fn style_at_start(text: &str) -> &str {
    let Some(parameters) = text.strip_prefix("\u{1b}[") else { return "" };
    let length = parameters.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(parameters.len());
    match parameters.get(length..).is_some_and(|rest| rest.starts_with('m')) {
        true => text.get(..2 + length + 1).unwrap_or_default(),
        false => "",
    }
}

/// Escapes JSON, with the same meaning. Such characters appear in its strings alone.
pub(super) fn escaped_json(json: &str) -> Cow<'_, str> {
    if json.chars().all(|c| is_text(c) || matches!(c, '\n' | '\t' | '\r')) {
        return Cow::Borrowed(json);
    }
    let mut shown = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match c {
            '\n' | '\t' | '\r' => shown.push(c),
            c if is_text(c) => shown.push(c),
            c => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    let _ = write!(shown, "\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Iterates over all characters.
    fn all() -> impl Iterator<Item = char> {
        '\0'..=char::MAX
    }

    #[test]
    fn what_steers_a_terminal_or_hides_is_shown_as_a_code() {
        let text = "a\u{1b}[2J\u{9b}31m\u{7f}\u{202e}b\u{200b}\u{feff}\r\nc\rd\u{e0041}";
        assert_eq!(escaped(text), "a\\x1b[2J\\x9b31m\\x7f\\u202eb\\u200b\\ufeff\r\nc\\x0dd\\U000e0041");
        assert_eq!(one_line("a\r\nb\tc\rd\u{85}"), "a b c d\\x85");
        for text in ["Zoë \u{a0}— 日本語 ❤\u{fe0f}", "a\n\tb\n", "C:\\x1b"] {
            assert_eq!(escaped(text), text);
        }
        for c in all().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
            assert!(!escaped(&c.to_string()).contains(c), "{c:?}");
        }
    }

    #[test]
    fn a_line_that_follows_a_break_is_no_line_of_its_own() {
        assert_eq!(continued("one\nERROR two\r\nthree\n"), "one\n    ERROR two\n    three");
        assert_eq!(continued("one\u{2028}two\u{85}three"), "one\\u2028two\\x85three");
    }

    #[test]
    fn of_sequences_in_a_log_only_colors_pass() {
        let line = "\u{1b}[2m10:00\u{1b}[0m a\u{1b}[2Jb\u{1b}]0;t\u{7}\nc\u{1b}";
        let shown = "\u{1b}[2m10:00\u{1b}[0m a\\x1b[2Jb\\x1b]0;t\\x07\n    c\\x1b";
        assert_eq!(continued_in_color(line), shown);
    }

    #[test]
    fn escaped_json_means_the_same_and_holds_text_alone() {
        let value = serde_json::Value::from(all().collect::<String>());
        let json = value.to_string();
        let shown = escaped_json(&json);
        assert!(shown.chars().all(is_text));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), value);
    }
}
