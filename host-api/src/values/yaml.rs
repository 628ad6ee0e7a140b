//! The only reader of YAML. Documents are untrusted, so their size, depth and aliases are bounded. Errors give line
//! and column.

use serde::de::DeserializeOwned;
use serde_saphyr::{Error, MessageFormatter as _, UserMessageFormatter};

use crate::excerpt;

/// The largest document, in bytes: metadata and bundles are a few KiB, relation data at most 1 MiB.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// A document that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// The document is too large.
    #[error("the document is {0} bytes long; at most 1048576 are read")]
    TooLarge(usize),
    /// The document is no YAML, or has a wrong shape.
    #[error("line {line} column {column}: {message}")]
    At {
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: u64,
        /// The error in words.
        message: String,
    },
    /// An error without a place in the document.
    #[error("{0}")]
    Whole(String),
}

/// Parses one document.
///
/// # Errors
/// [`YamlError`], with line and column where there are any.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    check_size(text)?;
    serde_saphyr::from_str(text).map_err(refused)
}

/// Parses all documents of a text. Together they may be as large as one.
///
/// # Errors
/// [`YamlError`], with line and column where there are any.
pub fn parse_all<T: DeserializeOwned>(text: &str) -> Result<Vec<T>, YamlError> {
    check_size(text)?;
    serde_saphyr::from_multiple(text).map_err(refused)
}

fn check_size(text: &str) -> Result<(), YamlError> {
    match text.len() > MAX_DOCUMENT {
        true => Err(YamlError::TooLarge(text.len())),
        false => Ok(()),
    }
}

fn refused(error: Error) -> YamlError {
    let message = words(error.without_snippet());
    match error.location() {
        Some(at) if at.line() > 0 => YamlError::At { line: at.line(), column: at.column(), message },
        _ => YamlError::Whole(message),
    }
}

/// Describes an error without its place, in terms of YAML: the library's own messages name its options and Rust's
/// types.
fn words(error: &Error) -> String {
    match error {
        Error::Budget { .. } => "the document is too large or too deeply nested".to_owned(),
        Error::Unexpected { expected, .. } => match *expected {
            "mapping start" => "a mapping is expected".to_owned(),
            "sequence start" => "a list is expected".to_owned(),
            "string scalar" => "a text is expected".to_owned(),
            expected => format!("expected {expected}"),
        },
        Error::InvalidScalar { ty, .. } if ty.starts_with('u') => {
            "a whole number is expected, not negative, and not too large".to_owned()
        }
        Error::InvalidScalar { ty, .. } if ty.starts_with('i') => {
            "a whole number is expected, and not too large".to_owned()
        }
        Error::InvalidScalar { ty: "boolean", .. } => "true or false is expected".to_owned(),
        Error::InvalidScalar { ty: "floating point", .. } => "a number is expected".to_owned(),
        error => excerpt::of_message(&UserMessageFormatter.format_message(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn an_error_says_where() {
        let error = parse::<BTreeMap<String, String>>("a: 1\nb: [\n").unwrap_err();
        assert!(matches!(error, YamlError::At { line, .. } if line >= 2), "{error}");
        let error = parse::<BTreeMap<String, u32>>("a: 1\nb: x\n").unwrap_err();
        assert!(matches!(error, YamlError::At { line: 2, column: 4, .. }), "{error}");
    }

    /// Returns the error for a text that is no map of numbers.
    fn error_of(text: &str) -> String {
        let read = parse::<BTreeMap<String, u32>>(text);
        read.map(|read| panic!("{:?} is {read:?}", text.chars().take(40))).unwrap_err().to_string()
    }

    #[test]
    fn an_error_says_where_once_and_gives_no_advice_to_programmers() {
        for (text, error) in [
            ("a: 1\na: 2\n", "line 2 column 1: duplicate mapping key: a not allowed here"),
            ("a: [\n", "line 1 column 4: a text is expected"),
            ("a: *b\n", "line 1 column 4: reference to unknown value"),
            ("a: x\n", "line 1 column 4: a whole number is expected, not negative, and not too large"),
            ("a: -1\n", "line 1 column 4: a whole number is expected, not negative, and not too large"),
            ("- a\n", "line 1 column 1: a mapping is expected"),
            ("a: 1\n---\nb: 2\n", "line 3 column 1: only single YAML document expected but multiple found"),
            ("a: ~\n", "line 1 column 4: a whole number is expected, not negative, and not too large"),
        ] {
            assert_eq!(error_of(text), error, "{text:?}");
        }
        for text in
            ["a: {b\n", "a: !!binary _\n", "? [a]\n: 1\n", "a: 'b\n", "a: {<<: 1}\n", "a: \"\\q\"\n", "}\n"]
        {
            let error = error_of(text);
            assert!(error.starts_with("line ") && !error.contains(" line "), "{text:?}: {error}");
            assert_eq!(error.matches("column ").count(), 1, "{text:?}: {error}");
            for word in ["Options", "Policy", "from_", "Option<", "u32", "\n"] {
                assert!(!error.contains(word), "{text:?}: {error}");
            }
        }
    }

    #[test]
    fn an_error_about_a_text_of_any_length_is_short() {
        let long = "9".repeat(500_000);
        let check = |error: String| assert!(error.len() < 400, "{} bytes", error.len());
        for text in [
            format!("a: {long}\n"),
            format!("a: \"{long}\"\n"),
            format!("{long}: 1\n{long}: 2\n"),
            format!("a: 1e{long}\n"),
            format!("a: *{long}\n"),
            format!("a: [{long}]\n"),
            long.clone(),
        ] {
            check(error_of(&text));
            if let Err(error) = parse::<serde_json::Value>(&text) {
                check(error.to_string());
            }
        }
        check(
            parse::<BTreeMap<String, String>>(&format!("a: !{long} 1\nb: [{long}]\n"))
                .unwrap_err()
                .to_string(),
        );
        check(parse::<Vec<std::net::Ipv4Addr>>(&format!("- '{long}'\n")).unwrap_err().to_string());
        check(parse::<crate::relation::Scope>(&format!("'{long}'\n")).unwrap_err().to_string());
    }

    #[test]
    fn values_keep_their_types() {
        let value: serde_json::Value = parse("a: 1\nb: '1'\nc: [true, null, 1.5]\n").unwrap();
        assert_eq!(value, serde_json::json!({"a": 1, "b": "1", "c": [true, null, 1.5]}));
    }

    #[test]
    fn an_alias_bomb_is_refused() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = level - 1;
            let aliases = vec![format!("*a{before}"); 10].join(", ");
            bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
        }
        assert!(parse::<serde_json::Value>(&bomb).is_err());
    }
}
