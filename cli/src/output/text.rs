//! Texts for output.

use std::{borrow::Cow, ops::Deref};

use super::{
    escape::{escaped, escaped_json},
    style::{TextStyle, styled},
};

/// A text for output.
///
/// A text from a [`String`] is for people, and is escaped for every destination, as a table is. Values for programs
/// ([`Text::value`]) and JSON are written byte for byte, except on a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Text {
    text: String,
    form: Form,
}

/// The kind of a text's reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// People. The text has no escape sequences but those of [`styled`].
    People,
    /// A program that reads another format: a value, YAML, a tool's output.
    Value,
    /// A program that reads JSON.
    Json,
}

/// The properties of a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reader {
    /// True if it is a terminal.
    pub(super) is_terminal: bool,
    /// True if it gets colours.
    pub(super) is_colored: bool,
}

impl Text {
    /// Creates a value for programs.
    pub(crate) fn value(text: impl Into<String>) -> Self {
        Self { text: text.into(), form: Form::Value }
    }

    /// Creates JSON.
    pub(super) fn json(text: String) -> Self {
        Self { text, form: Form::Json }
    }

    /// Creates a clean text for people, with styles: this program's own, or composed of escaped parts.
    pub(super) fn clean(text: String) -> Self {
        Self { text, form: Form::People }
    }

    /// Creates a text for people in a tone.
    pub(crate) fn painted(text: &str, style: TextStyle) -> Self {
        Self::clean(styled(&escaped(text), style))
    }

    /// Joins texts for people with a separator.
    pub(crate) fn joined(parts: impl IntoIterator<Item = Self>, between: &str) -> Self {
        let parts: Vec<String> = parts.into_iter().map(Self::for_people).collect();
        Self::clean(parts.join(between))
    }

    fn for_people(self) -> String {
        match self.form {
            Form::People => self.text,
            Form::Value | Form::Json => escaped(&self.text).into_owned(),
        }
    }

    /// Returns the text for a destination.
    pub(super) fn written(&self, reader: Reader) -> Cow<'_, str> {
        match self.form {
            Form::People if reader.is_colored || !self.text.contains('\u{1b}') => Cow::Borrowed(&self.text),
            Form::People => Cow::Owned(anstream::adapter::strip_str(&self.text).to_string()),
            Form::Value if reader.is_terminal => escaped(&self.text),
            Form::Json if reader.is_terminal => escaped_json(&self.text),
            Form::Value | Form::Json => Cow::Borrowed(&self.text),
        }
    }
}

/// Creates a text for people.
impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Self::clean(escaped(text).into_owned())
    }
}

/// Creates a text for people.
impl From<String> for Text {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

/// Creates a text for people.
impl From<&String> for Text {
    fn from(text: &String) -> Self {
        text.as_str().into()
    }
}

impl From<&Text> for Text {
    fn from(text: &Text) -> Self {
        text.clone()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// Formats the text for tests alone. Other code joins texts by their forms, not as strings.
#[cfg(test)]
impl std::fmt::Display for Text {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.text == *other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Reader = Reader { is_terminal: false, is_colored: true };
    const TERMINAL: Reader = Reader { is_terminal: true, is_colored: true };

    const HOSTILE: &str = "a\u{1b}[31m\u{9b}2J\u{202e}b";

    #[test]
    fn people_are_shown_codes_wherever_it_goes() {
        let text = Text::from(HOSTILE);
        for reader in [PROGRAM, TERMINAL] {
            assert_eq!(text.written(reader), "a\\x1b[31m\\x9b2J\\u202eb");
        }
        let text =
            Text::joined(["x ".into(), Text::painted(HOSTILE, TextStyle::Bad), Text::value(HOSTILE)], "");
        let plain = "x a\\x1b[31m\\x9b2J\\u202eba\\x1b[31m\\x9b2J\\u202eb";
        assert_eq!(text.written(Reader { is_colored: false, ..TERMINAL }), plain);
        assert_eq!(text.written(TERMINAL).matches('\u{1b}').count(), 2, "its own style, and its end");
    }

    #[test]
    fn programs_are_given_each_byte_and_terminals_none_that_steers_them() {
        let value = Text::value(HOSTILE);
        assert_eq!(value.written(PROGRAM), HOSTILE);
        assert_eq!(value.written(TERMINAL), "a\\x1b[31m\\x9b2J\\u202eb");
        let json = Text::json("\"\u{9b}\u{7f}\"\n".to_owned());
        assert_eq!(json.written(PROGRAM), "\"\u{9b}\u{7f}\"\n");
        assert_eq!(json.written(TERMINAL), "\"\\u009b\\u007f\"\n");
    }
}
