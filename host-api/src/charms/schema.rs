//! JSON Schema of action parameters (`docs/hook-model.md` 6.3): checked when a charm is packed or uploaded, and applied
//! when an operator runs an action.
//!
//! References are refused (M-11), so a schema is a finite tree, and each part is applied once to each place of a
//! value. The cost is bounded all the same, because charm authors and operators are untrusted. The keywords are those
//! of drafts 4 to 7. Other keys of a schema, such as `title` and `format`, are for people and forms.

use serde_json::{Map, Value};

mod budget;
mod check;
mod quote;
mod validate;

pub use budget::ValidationBudget;
pub use check::{SchemaError, check};
pub use validate::validate;

/// The deepest nesting of a schema or a value.
const MAX_DEPTH: usize = 32;

/// The types that a schema may name.
const TYPES: [&str; 7] = ["array", "boolean", "integer", "null", "number", "object", "string"];

/// The most memory of one compiled pattern, in bytes. Matching takes linear time.
const PATTERN_BYTES: usize = 256 << 10;

/// A value that a schema refuses.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// The effort of one request is used up.
    #[error("(root) : takes too long to check")]
    TooLong,
    /// The mistake with its place: `(root).port : must be of type integer, given "x"`.
    #[error("{0}")]
    Wrong(String),
}

/// Inserts a schema's defaults for absent keys, also in nested objects (M-12).
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
                // A nested default also creates the objects around it.
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
