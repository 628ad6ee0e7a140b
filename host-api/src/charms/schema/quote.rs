//! Quotations of values, keys and places in errors, bounded in size and cost.

use std::fmt;

use serde_json::Value;

/// The most bytes of a value or a name in an error.
const MAX_QUOTED: usize = 200;

/// The most bytes of a key in a place.
const MAX_KEY: usize = 50;

/// Returns a value as JSON, shortened.
pub(super) fn quote(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    truncate(text)
}

/// Returns a text as JSON, shortened.
pub(super) fn quote_text(text: &str) -> String {
    let mut quoted = String::new();
    push_text(&mut quoted, text);
    truncate(quoted)
}

fn truncate(mut text: String) -> String {
    if text.len() > MAX_QUOTED {
        text.truncate(text.floor_char_boundary(MAX_QUOTED));
        text.push_str("...");
    }
    text
}

/// Appends the shown part of a value, and a little more, so that `truncate` marks it as shortened.
fn push(text: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => text.push_str(&value.to_string()),
        Value::String(string) => push_text(text, string),
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if text.len() > MAX_QUOTED {
                    return;
                }
                if index > 0 {
                    text.push(',');
                }
                push(text, item);
            }
            text.push(']');
        }
        Value::Object(object) => {
            text.push('{');
            for (index, (key, value)) in object.iter().enumerate() {
                if text.len() > MAX_QUOTED {
                    return;
                }
                if index > 0 {
                    text.push(',');
                }
                push_text(text, key);
                text.push(':');
                push(text, value);
            }
            text.push('}');
        }
    }
}

fn push_text(text: &mut String, string: &str) {
    let shown = string.get(..string.floor_char_boundary(MAX_QUOTED + 1)).unwrap_or_default();
    text.push_str(&Value::from(shown).to_string());
}

/// A place in a value. It is formatted only when an error names it.
#[derive(Clone, Copy)]
pub(super) enum ValuePath<'a> {
    Root,
    Key(&'a ValuePath<'a>, &'a str),
    Index(&'a ValuePath<'a>, usize),
}

impl fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("(root)"),
            Self::Key(outer, key) => {
                let shown = key.get(..key.floor_char_boundary(MAX_KEY)).unwrap_or_default();
                write!(f, "{outer}.{shown}{}", if shown.len() < key.len() { "..." } else { "" })
            }
            Self::Index(outer, index) => write!(f, "{outer}.{index}"),
        }
    }
}
