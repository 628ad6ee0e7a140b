//! What errors quote of values, keys and places: a part of bounded size, at the cost of that part.

use std::fmt;

use serde_json::Value;

/// The most of a value or a name that an error quotes, in bytes.
const MAX_QUOTED: usize = 200;

/// The most of a key that is shown where it is part of a place.
const MAX_KEY: usize = 50;

/// A value as JSON.
pub(super) fn quote(value: &Value) -> String {
    let mut text = String::new();
    push(&mut text, value);
    cut(text)
}

/// A text as JSON.
pub(super) fn quote_text(text: &str) -> String {
    let mut quoted = String::new();
    push_text(&mut quoted, text);
    cut(quoted)
}

fn cut(mut text: String) -> String {
    if text.len() > MAX_QUOTED {
        text.truncate(text.floor_char_boundary(MAX_QUOTED));
        text.push_str("...");
    }
    text
}

/// Appends a value, as far as it is shown, and a little more, so that it shows that there is more.
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

/// A place in a value. It is written where an error names it, and costs nothing before.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Root,
    Key(&'a Place<'a>, &'a str),
    Index(&'a Place<'a>, usize),
}

impl fmt::Display for Place<'_> {
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
