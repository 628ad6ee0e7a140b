//! The one place where YAML is read: every document comes from a stranger, so size, depth and aliases are bounded,
//! and an error says where.

use serde::de::DeserializeOwned;

/// The largest document that is read, in bytes: metadata and bundles are a few KiB, relation data at most 1 MiB.
pub const MAX_DOCUMENT: usize = 1 << 20;

/// Why a document was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum YamlError {
    /// Too large to be read.
    #[error("the document is {0} bytes long; at most 1048576 are read")]
    TooLarge(usize),
    /// Not YAML, or not of the wanted shape.
    #[error("line {line} column {column}: {message}")]
    At {
        /// From 1.
        line: u64,
        /// From 1.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// Wrong as a whole.
    #[error("{0}")]
    Whole(String),
}

/// Reads one document.
///
/// # Errors
/// [`YamlError`], with line and column where there are any.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, YamlError> {
    check_size(text)?;
    serde_saphyr::from_str(text).map_err(refused)
}

/// Reads a text of any number of documents, one after the other; together they are as large as one may be.
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

fn refused(error: serde_saphyr::Error) -> YamlError {
    let message = first_line(&error.to_string());
    match error.location() {
        Some(at) if at.line() > 0 => YamlError::At { line: at.line(), column: at.column(), message },
        _ => YamlError::Whole(message),
    }
}

/// The library draws the source line below its message; one line is what fits into our errors.
fn first_line(text: &str) -> String {
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    line.trim_start_matches("error: ").trim().to_owned()
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
