//! The check that a JSON value is a schema.

use serde_json::{Map, Value};

use super::{MAX_DEPTH, TYPES, pattern};

/// The most parts of a schema, over all levels.
const MAX_PARTS: usize = 2_000;

/// A mistake in a schema.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {reason}")]
pub struct SchemaError {
    /// The place, such as `params.properties.port`.
    pub at: String,
    /// The reason.
    pub reason: String,
}

/// Checks a schema: each keyword has a valid value, there are no references, and the schema is not too large.
///
/// # Errors
/// [`SchemaError`] names the first mistake. `at` is the name of the schema in its place.
pub fn check(at: &str, schema: &Value) -> Result<(), SchemaError> {
    Check { parts: MAX_PARTS }.schema(at, schema, 0)
}

struct Check {
    parts: usize,
}

fn wrong(at: &str, reason: impl Into<String>) -> SchemaError {
    SchemaError { at: at.to_owned(), reason: reason.into() }
}

impl Check {
    fn schema(&mut self, at: &str, schema: &Value, depth: usize) -> Result<(), SchemaError> {
        if depth > MAX_DEPTH {
            return Err(wrong(at, format!("nested more than {MAX_DEPTH} deep")));
        }
        self.parts = self
            .parts
            .checked_sub(1)
            .ok_or_else(|| wrong(at, format!("a schema may have {MAX_PARTS} parts at most")))?;
        match schema {
            Value::Bool(_) => Ok(()),
            Value::Object(keywords) => {
                keywords.iter().try_for_each(|(name, value)| self.keyword(at, name, value, depth))
            }
            other => Err(wrong(at, format!("a schema is an object, not {other}"))),
        }
    }

    fn keyword(&mut self, at: &str, name: &str, value: &Value, depth: usize) -> Result<(), SchemaError> {
        let here = format!("{at}.{name}");
        match name {
            "$ref" | "$schema" => Err(wrong(at, format!("{name:?} is not supported"))),
            "type" => types(&here, value),
            "enum" => match value.as_array() {
                Some(values) if !values.is_empty() => Ok(()),
                _ => Err(wrong(&here, "a list of values expected")),
            },
            "required" => texts(&here, value),
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                for (key, schema) in object(&here, value)? {
                    if name == "patternProperties" {
                        compiles(&here, key)?;
                    }
                    match schema {
                        Value::Array(_) if name == "dependencies" => texts(&here, schema)?,
                        schema => self.schema(&format!("{here}.{key}"), schema, depth + 1)?,
                    }
                }
                Ok(())
            }
            "allOf" | "anyOf" | "oneOf" => match value.as_array() {
                Some(schemas) if !schemas.is_empty() => self.all(&here, schemas, depth),
                _ => Err(wrong(&here, "a list of schemas expected")),
            },
            "items" => match value {
                Value::Array(schemas) => self.all(&here, schemas, depth),
                schema => self.schema(&here, schema, depth + 1),
            },
            "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames"
            | "additionalProperties"
            | "additionalItems" => self.schema(&here, value, depth + 1),
            "minimum" | "maximum" | "multipleOf" => match value.as_f64() {
                Some(number) if name != "multipleOf" || number > 0.0 => Ok(()),
                _ => Err(wrong(&here, "a number expected")),
            },
            // `exclusiveMinimum` is a truth value in draft 4, and a number since draft 6.
            "exclusiveMinimum" | "exclusiveMaximum" if value.is_boolean() || value.is_number() => Ok(()),
            "exclusiveMinimum" | "exclusiveMaximum" => {
                Err(wrong(&here, "a number or a truth value expected"))
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties"
                if value.as_u64().is_none() =>
            {
                Err(wrong(&here, "a whole number expected"))
            }
            "uniqueItems" if !value.is_boolean() => Err(wrong(&here, "a truth value expected")),
            "pattern" => match value.as_str() {
                Some(text) => compiles(&here, text),
                None => Err(wrong(&here, "a pattern expected")),
            },
            _ => Ok(()),
        }
    }

    fn all(&mut self, at: &str, schemas: &[Value], depth: usize) -> Result<(), SchemaError> {
        schemas
            .iter()
            .enumerate()
            .try_for_each(|(index, schema)| self.schema(&format!("{at}.{index}"), schema, depth + 1))
    }
}

fn types(at: &str, value: &Value) -> Result<(), SchemaError> {
    let names = match value {
        Value::Array(names) if !names.is_empty() => names.as_slice(),
        name => std::slice::from_ref(name),
    };
    let unknown = names.iter().find(|name| !name.as_str().is_some_and(|name| TYPES.contains(&name)));
    match unknown {
        None => Ok(()),
        Some(name) => Err(wrong(at, format!("unknown type {name}; known are {}", TYPES.join(", ")))),
    }
}

fn texts(at: &str, value: &Value) -> Result<(), SchemaError> {
    match value.as_array() {
        Some(names) if names.iter().all(Value::is_string) => Ok(()),
        _ => Err(wrong(at, "a list of names expected")),
    }
}

fn object<'a>(at: &str, value: &'a Value) -> Result<&'a Map<String, Value>, SchemaError> {
    value.as_object().ok_or_else(|| wrong(at, "an object expected"))
}

fn compiles(at: &str, text: &str) -> Result<(), SchemaError> {
    match pattern(text) {
        Ok(_) => Ok(()),
        Err(error) => {
            // The engine draws the place over several lines; its last line names the mistake.
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            Err(wrong(at, format!("not a pattern: {reason}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_of_each_keyword_is_one() {
        let schema = json!({
            "type": ["object", "null"], "title": "t", "required": ["a"], "minProperties": 1, "maxProperties": 9,
            "properties": {
                "a": {"type": "integer", "minimum": 0, "exclusiveMinimum": true, "multipleOf": 2},
                "b": {"type": "string", "pattern": "^[a-z]+$", "minLength": 1, "format": "hostname"},
                "c": {"type": "array", "items": [{"enum": [1]}], "additionalItems": false, "uniqueItems": true},
            },
            "patternProperties": {"^x-": {}}, "additionalProperties": {"not": {"const": 1}},
            "dependencies": {"a": ["b"], "b": {"required": ["c"]}}, "propertyNames": {"maxLength": 9},
            "allOf": [{"if": true, "then": {}, "else": false}], "anyOf": [{}], "oneOf": [{}],
        });
        assert_eq!(check("params", &schema), Ok(()));
    }

    #[test]
    fn each_mistake_is_told_with_its_place() {
        for (schema, message) in [
            (json!(1), "params: a schema is an object, not 1"),
            (json!({"$ref": "#/x"}), "params: \"$ref\" is not supported"),
            (
                json!({"properties": {"a": {"$schema": "x"}}}),
                "params.properties.a: \"$schema\" is not supported",
            ),
            (
                json!({"type": "int"}),
                "params.type: unknown type \"int\"; known are array, boolean, integer, null, number, object, string",
            ),
            (json!({"enum": []}), "params.enum: a list of values expected"),
            (json!({"required": [1]}), "params.required: a list of names expected"),
            (json!({"minLength": -1}), "params.minLength: a whole number expected"),
            (json!({"multipleOf": 0}), "params.multipleOf: a number expected"),
            (json!({"pattern": "("}), "params.pattern: not a pattern: unclosed group"),
            (json!({"items": [{}, 1]}), "params.items.1: a schema is an object, not 1"),
        ] {
            assert_eq!(check("params", &schema).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn a_schema_that_is_too_deep_or_too_large_is_refused() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({"not": inner}));
        assert!(check("params", &deep).unwrap_err().reason.contains("nested more than 32 deep"));
        let wide = json!({"anyOf": vec![json!({}); 3_000]});
        assert!(check("params", &wide).unwrap_err().reason.contains("2000 parts at most"));
        let huge = json!({"pattern": "(a{1000}){1000}"});
        assert!(check("params", &huge).unwrap_err().reason.contains("not a pattern"));
    }
}
