//! Parameters of an action on the command line: `KEY=VALUE`, `KEY.KEY=VALUE`, or a YAML file.

use std::path::Path;

use periapt_host_api::action::Parameters;
use serde_json::{Map, Value};

use crate::{
    error::{Explain as _, Failure, Result},
    input,
};

/// The most parts of a key.
const MAX_DEPTH: usize = 32;

/// The reading of a value on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// YAML: `3` is a number.
    Yaml,
    /// Text, as given.
    Text,
}

/// Reads a file, then the command line, whose values win.
pub(super) fn read(file: Option<&Path>, arguments: &[String], reading: Reading) -> Result<Parameters> {
    let mut parameters = file.map(from_file).transpose()?.unwrap_or_default();
    for argument in arguments {
        let (path, text) = argument.split_once('=').ok_or_else(|| {
            Failure::new(format!("argument {argument:?} must be of the form key.key.key...=value"))
        })?;
        let keys: Vec<&str> = path.split('.').collect();
        if keys.len() > MAX_DEPTH || keys.iter().any(|key| key.is_empty()) {
            return Err(Failure::new(format!("invalid parameter key {path:?}")));
        }
        put(&mut parameters, &keys, value(text, reading));
    }
    Ok(parameters)
}

fn from_file(path: &Path) -> Result<Parameters> {
    let text = input::text_or_stdin(path)?;
    let read: Option<Map<String, Value>> =
        periapt_host_api::yaml::parse(&text).explain(|| format!("{}", path.display()))?;
    Ok(read.unwrap_or_default())
}

/// Parses a value. Invalid YAML is a text.
fn value(text: &str, reading: Reading) -> Value {
    match reading {
        Reading::Yaml if !text.is_empty() => {
            periapt_host_api::yaml::parse(text).unwrap_or_else(|_| text.into())
        }
        Reading::Yaml | Reading::Text => text.into(),
    }
}

fn put(parameters: &mut Parameters, keys: &[&str], value: Value) {
    match keys {
        [] => {}
        [last] => {
            parameters.insert((*last).to_owned(), value);
        }
        [first, rest @ ..] => {
            let inner = parameters.entry(*first).or_insert(Value::Null);
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            if let Value::Object(inner) = inner {
                put(inner, rest, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn check(file: Option<&str>, arguments: &[&str], reading: Reading, expected: Value) {
        let directory = tempfile::tempdir().unwrap();
        let path = file.map(|text| {
            let path = directory.path().join("params.yaml");
            fs::write(&path, text).unwrap();
            path
        });
        let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(Value::Object(read(path.as_deref(), &arguments, reading).unwrap()), expected);
    }

    #[test]
    fn keys_lead_into_objects_and_values_are_yaml() {
        check(
            None,
            &["a=1", "b.c=x", "b.d=[1, z]", "e="],
            Reading::Yaml,
            json!({"a": 1, "b": {"c": "x", "d": [1, "z"]}, "e": ""}),
        );
        check(None, &["a=1", "t=true"], Reading::Text, json!({"a": "1", "t": "true"}));
        check(None, &["url=http://x?a=b"], Reading::Yaml, json!({"url": "http://x?a=b"}));
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        check(Some("a: 1\nb: {c: 2}\n"), &["b.c=3"], Reading::Yaml, json!({"a": 1, "b": {"c": 3}}));
        check(Some(""), &[], Reading::Yaml, json!({}));
    }

    #[test]
    fn what_is_no_pair_is_refused() {
        for bad in ["x", "=1", "a..b=1"] {
            assert!(read(None, &[bad.to_owned()], Reading::Yaml).is_err(), "{bad}");
        }
    }
}
