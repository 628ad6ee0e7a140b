//! Whether a value is as a schema wants it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{MAX_DEPTH, pattern};

/// How many keywords are applied in one validation: a tenth of a second of the controller's single writer, at most.
const MAX_STEPS: u32 = 200_000;

/// What compiling one pattern counts for.
const PATTERN_STEPS: u32 = 200;

/// The most of a value that an error quotes.
const MAX_QUOTED: usize = 200;

/// Checks a value against a schema that [`check`](super::check) found good.
///
/// # Errors
/// What is wrong first, with its place: `(root).port : must be of type integer, given "x"`.
pub fn validate(schema: &Value, value: &Value) -> Result<(), String> {
    Validation { steps: MAX_STEPS }.value("(root)", schema, value, 0)
}

struct Validation {
    steps: u32,
}

type Found = Result<(), String>;

fn wrong(at: &str, reason: &str, given: &Value) -> String {
    let given = given.to_string();
    let end = given.floor_char_boundary(MAX_QUOTED);
    let (shown, more) = given.split_at(end);
    format!("{at} : {reason}, given {shown}{}", if more.is_empty() { "" } else { "..." })
}

impl Validation {
    fn spend(&mut self, steps: u32) -> Found {
        self.steps = self.steps.checked_sub(steps).ok_or("(root) : takes too long to check")?;
        Ok(())
    }

    fn value(&mut self, at: &str, schema: &Value, value: &Value, depth: usize) -> Found {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(format!("{at} : is nested more than {MAX_DEPTH} deep"));
        }
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return Err(wrong(at, "is not allowed", value)),
            _ => return Ok(()),
        };
        for (name, rule) in keywords {
            self.spend(1)?;
            self.any(at, name, rule, value, depth)?;
            match value {
                Value::String(text) => self.text(at, name, rule, text, value)?,
                Value::Number(_) => number(at, name, rule, keywords, value)?,
                Value::Array(items) => self.items(at, name, rule, keywords, items, depth)?,
                Value::Object(object) => self.object(at, name, rule, keywords, object, depth)?,
                Value::Null | Value::Bool(_) => {}
            }
        }
        Ok(())
    }

    /// Keywords for values of every type.
    fn any(&mut self, at: &str, name: &str, rule: &Value, value: &Value, depth: usize) -> Found {
        let schemas = rule.as_array().map(Vec::as_slice).unwrap_or_default();
        match name {
            "type" if !is_of(rule, value) => {
                let types = rule.as_array().map_or_else(|| rule.to_string(), |_| format!("one of {rule}"));
                Err(wrong(at, &format!("must be of type {}", types.trim_matches('"')), value))
            }
            "enum" if !schemas.contains(value) => Err(wrong(at, &format!("must be one of {rule}"), value)),
            "const" if rule != value => Err(wrong(at, &format!("must be {rule}"), value)),
            "allOf" => schemas.iter().try_for_each(|schema| self.value(at, schema, value, depth + 1)),
            "anyOf" | "oneOf" => {
                let mut matches = 0_usize;
                let mut first = None;
                for schema in schemas {
                    match self.value(at, schema, value, depth + 1) {
                        Ok(()) => matches += 1,
                        Err(error) if first.is_none() => first = Some(error),
                        Err(_) => {}
                    }
                }
                match (name, matches, first) {
                    (_, 1, _) | ("anyOf", 1.., _) => Ok(()),
                    (_, 0, Some(first)) => Err(first),
                    _ => Err(wrong(at, "must match exactly one of several schemas", value)),
                }
            }
            "not" => {
                let matches = self.value(at, rule, value, depth + 1).is_ok();
                if matches { Err(wrong(at, "is what it must not be", value)) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, at: &str, name: &str, rule: &Value, text: &str, value: &Value) -> Found {
        let length = || text.chars().count() as u64;
        match (name, rule.as_u64(), rule.as_str()) {
            ("minLength", Some(least), _) if length() < least => {
                Err(wrong(at, &format!("must have {least} characters at least"), value))
            }
            ("maxLength", Some(most), _) if length() > most => {
                Err(wrong(at, &format!("must have {most} characters at most"), value))
            }
            ("pattern", _, Some(rule)) if !self.matches(rule, text)? => {
                Err(wrong(at, &format!("must match {rule:?}"), value))
            }
            _ => Ok(()),
        }
    }

    fn matches(&mut self, rule: &str, text: &str) -> Result<bool, String> {
        self.spend(PATTERN_STEPS + u32::try_from(text.len() / 16).unwrap_or(u32::MAX))?;
        Ok(pattern(rule).is_ok_and(|rule| rule.is_match(text)))
    }

    fn items(
        &mut self,
        at: &str,
        name: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        items: &[Value],
        depth: usize,
    ) -> Found {
        let count = items.len() as u64;
        let whole = || Value::Array(items.to_vec());
        match (name, rule) {
            ("items", Value::Array(schemas)) => {
                let rest = keywords.get("additionalItems").unwrap_or(&Value::Bool(true));
                for (index, item) in items.iter().enumerate() {
                    let schema = schemas.get(index).unwrap_or(rest);
                    self.value(&format!("{at}.{index}"), schema, item, depth + 1)?;
                }
                Ok(())
            }
            ("items", schema) => items
                .iter()
                .enumerate()
                .try_for_each(|(index, item)| self.value(&format!("{at}.{index}"), schema, item, depth + 1)),
            ("contains", schema) => {
                for item in items {
                    if self.value(at, schema, item, depth + 1).is_ok() {
                        return Ok(());
                    }
                }
                Err(wrong(at, "must contain an item of a certain kind", &whole()))
            }
            ("uniqueItems", Value::Bool(true)) => {
                let different: BTreeSet<String> = items.iter().map(ToString::to_string).collect();
                let all = different.len() == items.len();
                if all { Ok(()) } else { Err(wrong(at, "must not hold an item twice", &whole())) }
            }
            ("minItems", rule) if rule.as_u64().is_some_and(|least| count < least) => {
                Err(wrong(at, &format!("must have {rule} items at least"), &whole()))
            }
            ("maxItems", rule) if rule.as_u64().is_some_and(|most| count > most) => {
                Err(wrong(at, &format!("must have {rule} items at most"), &whole()))
            }
            _ => Ok(()),
        }
    }

    fn object(
        &mut self,
        at: &str,
        name: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        object: &Map<String, Value>,
        depth: usize,
    ) -> Found {
        let count = object.len() as u64;
        let whole = || Value::Object(object.clone());
        match (name, rule) {
            ("required", Value::Array(names)) => {
                let absent = names.iter().filter_map(Value::as_str).find(|name| !object.contains_key(*name));
                match absent {
                    Some(name) => {
                        Err(wrong(at, &format!("{name:?} property is missing and required"), &whole()))
                    }
                    None => Ok(()),
                }
            }
            ("properties", Value::Object(schemas)) => {
                for (key, schema) in schemas {
                    if let Some(value) = object.get(key) {
                        self.value(&format!("{at}.{key}"), schema, value, depth + 1)?;
                    }
                }
                Ok(())
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (key, value) in object {
                    for (rule, schema) in schemas {
                        if self.matches(rule, key)? {
                            self.value(&format!("{at}.{key}"), schema, value, depth + 1)?;
                        }
                    }
                }
                Ok(())
            }
            ("additionalProperties", schema) => {
                for (key, value) in object {
                    if self.is_declared(keywords, key)? {
                        continue;
                    }
                    if *schema == Value::Bool(false) {
                        return Err(format!("{at} : additional property {key:?} is not allowed"));
                    }
                    self.value(&format!("{at}.{key}"), schema, value, depth + 1)?;
                }
                Ok(())
            }
            ("propertyNames", schema) => object
                .keys()
                .try_for_each(|key| self.value(at, schema, &Value::String(key.clone()), depth + 1)),
            ("dependencies", Value::Object(rules)) => {
                for (_, rule) in rules.iter().filter(|(key, _)| object.contains_key(*key)) {
                    match rule {
                        Value::Array(_) => {
                            self.object(at, "required", rule, keywords, object, depth)?;
                        }
                        schema => self.value(at, schema, &whole(), depth + 1)?,
                    }
                }
                Ok(())
            }
            ("if", schema) => {
                let whole = whole();
                let branch = match self.value(at, schema, &whole, depth + 1) {
                    Ok(()) => "then",
                    Err(_) => "else",
                };
                keywords.get(branch).map_or(Ok(()), |schema| self.value(at, schema, &whole, depth + 1))
            }
            ("minProperties", rule) if rule.as_u64().is_some_and(|least| count < least) => {
                Err(wrong(at, &format!("must have {rule} properties at least"), &whole()))
            }
            ("maxProperties", rule) if rule.as_u64().is_some_and(|most| count > most) => {
                Err(wrong(at, &format!("must have {rule} properties at most"), &whole()))
            }
            _ => Ok(()),
        }
    }

    fn is_declared(&mut self, keywords: &Map<String, Value>, key: &str) -> Result<bool, String> {
        if keywords.get("properties").and_then(Value::as_object).is_some_and(|known| known.contains_key(key))
        {
            return Ok(true);
        }
        for rule in keywords.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            if self.matches(rule.0, key)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn is_of(rule: &Value, value: &Value) -> bool {
    let is = |name: &str| match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
        Value::Number(number) => {
            name == "number"
                || name == "integer"
                    && (number.is_i64()
                        || number.is_u64()
                        || number.as_f64().is_some_and(|it| it.fract() == 0.0))
        }
    };
    match rule {
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        name => name.as_str().is_none_or(is),
    }
}

fn number(at: &str, name: &str, rule: &Value, keywords: &Map<String, Value>, value: &Value) -> Found {
    let (Some(bound), Some(number)) = (rule.as_f64(), value.as_f64()) else { return Ok(()) };
    let strict = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
    let must = |what: String| Err(wrong(at, &format!("must be {what}"), value));
    match name {
        "minimum" if strict("exclusiveMinimum") && number <= bound => must(format!("greater than {rule}")),
        "maximum" if strict("exclusiveMaximum") && number >= bound => must(format!("less than {rule}")),
        "minimum" if number < bound => must(format!("{rule} at least")),
        "maximum" if number > bound => must(format!("{rule} at most")),
        "exclusiveMinimum" if number <= bound => must(format!("greater than {rule}")),
        "exclusiveMaximum" if number >= bound => must(format!("less than {rule}")),
        "multipleOf" if (number / bound).fract().abs() > f64::EPSILON => {
            must(format!("a multiple of {rule}"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(schema: Value, value: Value) -> String {
        super::super::check("params", &schema).unwrap();
        validate(&schema, &value).unwrap_err()
    }

    #[test]
    fn a_value_that_fits_is_taken() {
        let schema = json!({
            "type": "object", "required": ["a"],
            "properties": {
                "a": {"type": "integer", "minimum": 1, "maximum": 9},
                "b": {"type": "array", "items": {"type": "string", "pattern": "^x"}, "uniqueItems": true},
                "c": {"oneOf": [{"type": "null"}, {"enum": ["d"]}]},
                "e": {"if": {"required": ["f"]}, "then": {"required": ["g"]}},
            },
            "patternProperties": {"^n-": {"type": "number"}}, "additionalProperties": false,
        });
        for value in [
            json!({"a": 1}),
            json!({"a": 2.0, "b": ["x", "xy"], "c": null, "n-x": 1.5}),
            json!({"a": 9, "b": [], "c": "d", "e": {"f": 1, "g": 2}}),
        ] {
            assert_eq!(validate(&schema, &value), Ok(()), "{value}");
        }
    }

    #[test]
    fn each_keyword_refuses_what_it_is_there_to_refuse() {
        for (schema, value, message) in [
            (json!({"type": "string"}), json!(5), "(root) : must be of type string, given 5"),
            (
                json!({"type": ["string", "null"]}),
                json!(5),
                "(root) : must be of type one of [\"string\",\"null\"], given 5",
            ),
            (json!({"enum": [1, 2]}), json!(3), "(root) : must be one of [1,2], given 3"),
            (json!({"const": 1}), json!(2), "(root) : must be 1, given 2"),
            (
                json!({"required": ["a"]}),
                json!({"b": 1}),
                "(root) : \"a\" property is missing and required, given {\"b\":1}",
            ),
            (
                json!({"properties": {"a": {"type": "integer"}}}),
                json!({"a": 1.5}),
                "(root).a : must be of type integer, given 1.5",
            ),
            (
                json!({"additionalProperties": false}),
                json!({"a": 1}),
                "(root) : additional property \"a\" is not allowed",
            ),
            (
                json!({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
                json!({"a": 1, "b": 2}),
                "(root).b : must be of type string, given 2",
            ),
            (json!({"minimum": 1}), json!(0), "(root) : must be 1 at least, given 0"),
            (
                json!({"minimum": 1, "exclusiveMinimum": true}),
                json!(1),
                "(root) : must be greater than 1, given 1",
            ),
            (json!({"exclusiveMaximum": 3}), json!(3), "(root) : must be less than 3, given 3"),
            (json!({"multipleOf": 2}), json!(3), "(root) : must be a multiple of 2, given 3"),
            (json!({"minLength": 2}), json!("é"), "(root) : must have 2 characters at least, given \"é\""),
            (json!({"pattern": "^a$"}), json!("b"), "(root) : must match \"^a$\", given \"b\""),
            (
                json!({"items": {"type": "null"}}),
                json!([null, 1]),
                "(root).1 : must be of type null, given 1",
            ),
            (
                json!({"items": [{}], "additionalItems": false}),
                json!([1, 2]),
                "(root).1 : is not allowed, given 2",
            ),
            (
                json!({"uniqueItems": true}),
                json!([1, 1]),
                "(root) : must not hold an item twice, given [1,1]",
            ),
            (json!({"maxItems": 1}), json!([1, 2]), "(root) : must have 1 items at most, given [1,2]"),
            (
                json!({"contains": {"const": 1}}),
                json!([2]),
                "(root) : must contain an item of a certain kind, given [2]",
            ),
            (
                json!({"oneOf": [{}, {"type": "integer"}]}),
                json!(1),
                "(root) : must match exactly one of several schemas, given 1",
            ),
            (json!({"anyOf": [{"const": 1}, {"const": 2}]}), json!(3), "(root) : must be 1, given 3"),
            (json!({"not": {"type": "null"}}), json!(null), "(root) : is what it must not be, given null"),
            (
                json!({"dependencies": {"a": ["b"]}}),
                json!({"a": 1}),
                "(root) : \"b\" property is missing and required, given {\"a\":1}",
            ),
            (
                json!({"propertyNames": {"maxLength": 1}}),
                json!({"ab": 1}),
                "(root) : must have 1 characters at most, given \"ab\"",
            ),
            (
                json!({"patternProperties": {"^a": {"type": "null"}}}),
                json!({"ab": 1}),
                "(root).ab : must be of type null, given 1",
            ),
            (json!({"minProperties": 1}), json!({}), "(root) : must have 1 properties at least, given {}"),
            (
                json!({"if": {"required": ["a"]}, "else": {"required": ["b"]}}),
                json!({}),
                "(root) : \"b\" property is missing and required, given {}",
            ),
        ] {
            assert_eq!(refused(schema, value), message);
        }
    }

    #[test]
    fn what_a_check_costs_is_bounded() {
        let schema = json!({"items": {"allOf": vec![json!({"pattern": "a"}); 1_000]}});
        let value = json!(vec!["a"; 10_000]);
        assert_eq!(refused(schema, value), "(root) : takes too long to check");
    }

    #[test]
    fn a_long_value_is_quoted_in_part() {
        let message = refused(json!({"type": "null"}), json!("x".repeat(10_000)));
        assert!(message.len() < 300 && message.ends_with("..."), "{message}");
    }
}
