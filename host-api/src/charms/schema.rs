//! JSON Schema, as actions' parameters use it (`hook-model.md` 6.3): checked when a charm is packed or uploaded, and
//! applied when an action is asked for.
//!
//! References are refused (M-11), so a schema is a finite tree and each of its parts is looked at once for each
//! place of a value. What it costs is counted all the same: charm authors and operators are strangers. The keywords
//! are those of drafts 4 to 7; what else stands in a schema, such as `title` and `format`, is for people and forms.

use serde_json::{Map, Value};

mod check;
mod effort;
mod quote;
mod validate;

pub use check::{SchemaError, check};
pub use effort::Effort;
pub use validate::validate;

/// How deep a schema or a value may be nested.
const MAX_DEPTH: usize = 32;

/// The types that a schema may name.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// How much memory one pattern may take when it is compiled, in bytes. Patterns are matched in linear time.
const PATTERN_BYTES: usize = 256 << 10;

/// Why a value does not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// What the checks of one request may cost is used up.
    #[error("(root) : takes too long to check")]
    TooLong,
    /// What is wrong, with its place: `(root).port : must be of type integer, given "x"`.
    #[error("{0}")]
    Wrong(String),
}

/// Inserts a schema's defaults where a value says nothing, in objects within objects, too (M-12).
pub fn insert_defaults(schema: &Value, object: &mut Map<String, Value>) {
    fill(schema, object, MAX_DEPTH);
}

fn fill(schema: &Value, object: &mut Map<String, Value>, depth: usize) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object).filter(|_| depth > 0) else {
        return;
    };
    for (name, property) in properties {
        match object.get_mut(name) {
            Some(Value::Object(inner)) => fill(property, inner, depth - 1),
            Some(_) => {}
            None => {
                if let Some(default) = property.get("default") {
                    object.insert(name.clone(), default.clone());
                    continue;
                }
                // Defaults that lie deeper bring the objects around them.
                let mut inner = Map::new();
                fill(property, &mut inner, depth - 1);
                if !inner.is_empty() {
                    object.insert(name.clone(), Value::Object(inner));
                }
            }
        }
    }
}

fn pattern(text: &str) -> Result<regex::Regex, regex::Error> {
    pattern_within(text, PATTERN_BYTES)
}

fn pattern_within(text: &str, bytes: usize) -> Result<regex::Regex, regex::Error> {
    regex::RegexBuilder::new(text).size_limit(bytes).dfa_size_limit(PATTERN_BYTES).build()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(schema: Value, mut value: Value) -> Value {
        insert_defaults(&schema, value.as_object_mut().unwrap());
        value
    }

    #[test]
    fn defaults_stand_in_for_what_is_not_said() {
        let schema = json!({"properties": {
            "a": {"default": 1},
            "b": {"type": "string"},
            "c": {"properties": {"d": {"default": {"x": 1}}, "e": {"type": "string"}}},
        }});
        assert_eq!(filled(schema.clone(), json!({})), json!({"a": 1, "c": {"d": {"x": 1}}}));
        assert_eq!(filled(schema.clone(), json!({"a": null})), json!({"a": null, "c": {"d": {"x": 1}}}));
        assert_eq!(filled(schema, json!({"c": {"e": "f"}})), json!({"a": 1, "c": {"d": {"x": 1}, "e": "f"}}));
    }

    #[test]
    fn a_default_that_is_an_object_is_taken_as_it_is() {
        let schema = json!({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}});
        assert_eq!(filled(schema, json!({})), json!({"a": {}}));
    }
}
