//! YAML as Juju's tools print it: block style, with bare texts where every parser reads a text (`port: "3306"`, but
//! `host: 10.0.0.4`).

use serde_json::Value;

/// The longest key without a leading `?`. Parsers accept a plain key only if it ends within 1,024 characters.
const LONGEST_PLAIN_KEY: usize = 1_000;

/// Prints one document, with a line break at its end.
pub(super) fn document(value: &Value) -> String {
    let mut text = String::new();
    match value {
        Value::Object(map) if !map.is_empty() => block(&mut text, value, 0),
        Value::Array(items) if !items.is_empty() => block(&mut text, value, 0),
        flat => {
            text.push_str(&inline(flat));
            text.push('\n');
        }
    }
    text
}

/// Prints a map or list that is not empty, each entry on a line of its own.
fn block(text: &mut String, value: &Value, depth: usize) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let key = scalar(key);
                match key.len() > LONGEST_PLAIN_KEY {
                    true => text.push_str(&format!("{indent}? {key}\n{indent}:")),
                    false => text.push_str(&format!("{indent}{key}:")),
                }
                entry(text, value, depth);
            }
        }
        Value::Array(items) => {
            for value in items {
                text.push_str(&indent);
                text.push('-');
                entry(text, value, depth);
            }
        }
        flat => text.push_str(&inline(flat)),
    }
}

/// Prints the value after a key or a dash, with the line break.
fn entry(text: &mut String, value: &Value, depth: usize) {
    let nested = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    };
    if nested {
        text.push('\n');
        block(text, value, depth + 1);
    } else {
        text.push(' ');
        text.push_str(&inline(value));
        text.push('\n');
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

fn scalar(text: &str) -> String {
    if is_plain(text) { text.to_owned() } else { quoted(text) }
}

/// Returns true if every parser reads the bare text as a text. In doubt it returns false.
fn is_plain(text: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " ._/@+,=()%-:;#".contains(c);
    let inner = text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/' || c == '_')
        && !text.ends_with([' ', ':'])
        && !text.contains(": ")
        && !text.contains(" #")
        && text.chars().all(allowed);
    inner && !is_word_of_yaml(text) && !may_be_number_or_time(text)
}

fn is_word_of_yaml(text: &str) -> bool {
    let words = ["true", "false", "yes", "no", "on", "off", "y", "n", "null"];
    words.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns true if the text may be a number or a time. Numbers in all bases and with exponents, dates, and base-60
/// numbers begin with a digit (a leading sign or dot is always quoted), and have none of the characters of a network
/// address, a path, a secret's id or a UUID.
fn may_be_number_or_time(text: &str) -> bool {
    let dotted = text.matches('.').count() > 1 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let word = text.bytes().any(|b| b.is_ascii_alphabetic() && !b"abcdefABCDEFxXoOtTzZ".contains(&b));
    text.starts_with(|c: char| c.is_ascii_digit() || c == '_')
        && !dotted
        && !word
        && !is_uuid(text)
        && !text.contains('/')
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            // Not printable, or a line break to some parsers.
            c if c.is_control()
                || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}') =>
            {
                quoted.push_str(&format!("\\u{:04x}", u32::from(c)));
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn bags_are_printed_as_documented() {
        let bag =
            json!({"host": "10.0.0.4", "port": "3306", "empty": "", "user": "a b", "url": "http://x:80/y"});
        let expected = "empty: \"\"\nhost: 10.0.0.4\nport: \"3306\"\nurl: http://x:80/y\nuser: a b\n";
        assert_eq!(document(&bag), expected);
    }

    #[test]
    fn nested_maps_and_lists_are_indented() {
        let value = json!({"a": {"b": {"c": [1, {"d": []}], "e": {}}}, "f": null});
        let expected = "a:\n  b:\n    c:\n      - 1\n      -\n        d: []\n    e: {}\nf: null\n";
        assert_eq!(document(&value), expected);
        assert_eq!(periapt_host_api::yaml::parse::<Value>(expected).unwrap(), value);
    }

    #[test]
    fn texts_that_could_be_taken_for_something_else_are_quoted() {
        let odd = [
            "3306",
            "1e3",
            "0x1f",
            "1_000",
            "12:30:00",
            "2024-01-01",
            "1.5",
            "true",
            "No",
            "null",
            "~",
            "- a",
            "a: b",
            "a #b",
            "#a",
            " a",
            "a ",
            "[a]",
            "{a",
            "*a",
            "&a",
            "!a",
            "|",
            ">",
            "'a'",
            "a:",
            "",
            "\u{7}",
            "a\nb",
            "é",
            "=",
            ".5",
            "-1",
            "+1",
            "@a",
            "`a",
        ];
        for text in odd {
            assert!(document(&json!(text)).starts_with('"'), "{text}");
        }
        for text in [
            "mysql",
            "a/b",
            "a#b",
            "db:1",
            "8.0-rc1",
            "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
            "10.0.0.4",
            "10.0.0.0/24",
            "fe-80",
            "Ready (1 of 3), 20% done",
        ] {
            assert_eq!(document(&json!(text)), format!("{text}\n"));
        }
    }

    fn keys() -> &'static str {
        "\\PC{0,8}|[a-z0-9.:_+-]{1,8}|.{0,3}"
    }

    fn values() -> &'static str {
        ".{0,12}|[0-9a-fxeT:.+-]{1,9}"
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(bag in proptest::collection::btree_map(keys(), values(), 0..6)) {
            let value = serde_json::to_value(&bag).unwrap();
            let read: BTreeMap<String, Value> = periapt_host_api::yaml::parse(&document(&value)).unwrap();
            let texts = read.into_iter().map(|(key, value)| (key, value.as_str().unwrap().to_owned()));
            prop_assert_eq!(texts.collect::<BTreeMap<_, _>>(), bag);
        }

        #[test]
        fn long_keys_are_read_back(length in 900_usize..1_200) {
            let value = json!({"k".repeat(length): {"x": "y"}, "z\"".repeat(length): "1"});
            prop_assert_eq!(periapt_host_api::yaml::parse::<Value>(&document(&value)).unwrap(), value);
        }
    }
}
