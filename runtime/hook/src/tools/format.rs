//! Output formats (`docs/hook-model.md` 5.1).

use serde_json::Value;

use super::{flags::GivenFlag, yaml};
use crate::CallError;

/// An output format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    /// The format for shells: bare texts, lists line by line, other values as YAML.
    Smart,
    Yaml,
    Json,
}

impl Format {
    pub(super) fn of_flag(given: &GivenFlag) -> Result<Self, CallError> {
        match given.value.as_str() {
            "smart" => Ok(Self::Smart),
            "yaml" => Ok(Self::Yaml),
            "json" => Ok(Self::Json),
            other => Err(CallError::invalid(format!(
                "invalid value {other:?} for option {}: unknown format {other:?}",
                given.name
            ))),
        }
    }

    /// Formats the value, with a line break at its end. Returns nothing for a null, except as JSON.
    pub(super) fn print(self, value: &Value) -> String {
        match (self, value) {
            (Self::Json, value) => format!("{value}\n"),
            (_, Value::Null) => String::new(),
            (Self::Smart, Value::String(text)) => line(text),
            (Self::Smart, Value::Bool(truth)) => line(if *truth { "True" } else { "False" }),
            (Self::Smart, Value::Array(items)) => match texts(items) {
                Some(texts) => line(&texts.join("\n")),
                None => yaml::document(value),
            },
            (_, value) => yaml::document(value),
        }
    }
}

fn line(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => format!("{text}\n"),
    }
}

fn texts(items: &[Value]) -> Option<Vec<&str>> {
    items.iter().map(Value::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_value_is_printed_as_charms_expect() {
        for (value, smart, yaml, json) in [
            (json!(null), "", "", "null\n"),
            (json!("text"), "text\n", "text\n", "\"text\"\n"),
            (json!("80"), "80\n", "\"80\"\n", "\"80\"\n"),
            (json!(""), "", "\"\"\n", "\"\"\n"),
            (json!(true), "True\n", "true\n", "true\n"),
            (json!(false), "False\n", "false\n", "false\n"),
            (json!(80), "80\n", "80\n", "80\n"),
            (json!(["a", "b"]), "a\nb\n", "- a\n- b\n", "[\"a\",\"b\"]\n"),
            (json!([]), "", "[]\n", "[]\n"),
            (json!({}), "{}\n", "{}\n", "{}\n"),
            (json!({"b": 1, "a": "x"}), "a: x\nb: 1\n", "a: x\nb: 1\n", "{\"a\":\"x\",\"b\":1}\n"),
        ] {
            assert_eq!(Format::Smart.print(&value), smart, "{value}");
            assert_eq!(Format::Yaml.print(&value), yaml, "{value}");
            assert_eq!(Format::Json.print(&value), json, "{value}");
        }
    }
}
