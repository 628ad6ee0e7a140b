//! The check of a value against a schema.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{
    MAX_DEPTH, Mismatch, ValidationBudget,
    budget::weight,
    quote::{ValuePath, quote, quote_text},
};

mod multiple;
#[cfg(test)]
mod tests;

use multiple::is_multiple;

/// The steps of building an error, even if nobody reads it.
const ERROR_STEPS: u32 = 4;

/// Checks a value against a schema that passed [`check`](fn@super::check).
///
/// # Errors
/// [`Mismatch`]: the first one.
pub fn validate(schema: &Value, value: &Value, budget: &mut ValidationBudget) -> Result<(), Mismatch> {
    Validation { budget }.value(ValuePath::Root, schema, value, 0)?;
    // A check that ran out of effort may have counted as a mismatch within `not` or `oneOf`.
    budget.spend(1)
}

struct Validation<'e> {
    budget: &'e mut ValidationBudget,
}

type Found = Result<(), Mismatch>;

impl Validation<'_> {
    fn spend(&mut self, steps: u32) -> Found {
        self.budget.spend(steps)
    }

    fn wrong(&mut self, at: ValuePath<'_>, reason: impl std::fmt::Display, given: &Value) -> Found {
        self.spend(ERROR_STEPS)?;
        Err(Mismatch::Wrong(format!("{at} : {reason}, given {}", quote(given))))
    }

    fn value(&mut self, at: ValuePath<'_>, schema: &Value, value: &Value, depth: usize) -> Found {
        self.spend(1)?;
        if depth > MAX_DEPTH {
            return Err(Mismatch::Wrong(format!("{at} : is nested more than {MAX_DEPTH} deep")));
        }
        let keywords = match schema {
            Value::Object(keywords) => keywords,
            Value::Bool(false) => return self.wrong(at, "is not allowed", value),
            _ => return Ok(()),
        };
        for (name, rule) in keywords {
            self.spend(1)?;
            self.any(at, name, rule, value, depth)?;
            match value {
                Value::String(text) => self.text(at, name, rule, text, value)?,
                Value::Number(_) => self.number(at, name, rule, keywords, value)?,
                Value::Array(items) => self.items(at, name, rule, keywords, items, value, depth)?,
                Value::Object(object) => self.object(at, name, rule, keywords, object, value, depth)?,
                Value::Null | Value::Bool(_) => {}
            }
        }
        Ok(())
    }

    /// Checks the keywords that apply to values of every type.
    fn any(&mut self, at: ValuePath<'_>, name: &str, rule: &Value, value: &Value, depth: usize) -> Found {
        let schemas = rule.as_array().map(Vec::as_slice).unwrap_or_default();
        match name {
            "type" => {
                self.budget.spend_comparisons(&Value::Null, schemas.len())?;
                if is_of(rule, value) {
                    return Ok(());
                }
                let one_of = if rule.is_array() { "one of " } else { "" };
                let types = quote(rule);
                self.wrong(at, format!("must be of type {one_of}{}", types.trim_matches('"')), value)
            }
            "enum" => {
                self.budget.spend_comparisons(value, schemas.len())?;
                if schemas.contains(value) {
                    return Ok(());
                }
                self.wrong(at, format_args!("must be one of {}", quote(rule)), value)
            }
            "const" => {
                self.budget.spend_comparisons(value, 1)?;
                if rule == value {
                    return Ok(());
                }
                self.wrong(at, format_args!("must be {}", quote(rule)), value)
            }
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
                    _ => self.wrong(at, "must match exactly one of several schemas", value),
                }
            }
            "not" => {
                let matches = self.value(at, rule, value, depth + 1).is_ok();
                if matches { self.wrong(at, "is what it must not be", value) } else { Ok(()) }
            }
            _ => Ok(()),
        }
    }

    fn text(&mut self, at: ValuePath<'_>, name: &str, rule: &Value, text: &str, value: &Value) -> Found {
        match (name, rule.as_u64(), rule.as_str()) {
            ("minLength" | "maxLength", Some(bound), _) => {
                self.budget.spend_bytes(text.len())?;
                let length = text.chars().count() as u64;
                match name {
                    "minLength" if length < bound => {
                        self.wrong(at, format_args!("must have {bound} characters at least"), value)
                    }
                    "maxLength" if length > bound => {
                        self.wrong(at, format_args!("must have {bound} characters at most"), value)
                    }
                    _ => Ok(()),
                }
            }
            ("pattern", _, Some(pattern)) if !self.budget.matches(pattern, text)? => {
                self.wrong(at, format_args!("must match {}", quote(rule)), value)
            }
            _ => Ok(()),
        }
    }

    fn number(
        &mut self,
        at: ValuePath<'_>,
        name: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        value: &Value,
    ) -> Found {
        let (Some(bound), Some(number)) = (rule.as_f64(), value.as_f64()) else { return Ok(()) };
        let strict = |keyword: &str| keywords.get(keyword) == Some(&Value::Bool(true));
        let must = match name {
            "minimum" if strict("exclusiveMinimum") && number <= bound => format!("greater than {rule}"),
            "maximum" if strict("exclusiveMaximum") && number >= bound => format!("less than {rule}"),
            "minimum" if number < bound => format!("{rule} at least"),
            "maximum" if number > bound => format!("{rule} at most"),
            "exclusiveMinimum" if number <= bound => format!("greater than {rule}"),
            "exclusiveMaximum" if number >= bound => format!("less than {rule}"),
            "multipleOf" if !is_multiple(value, rule) => format!("a multiple of {rule}"),
            _ => return Ok(()),
        };
        self.wrong(at, format_args!("must be {must}"), value)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a keyword, what stands beside it, and the value, whole and taken apart"
    )]
    fn items(
        &mut self,
        at: ValuePath<'_>,
        name: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        items: &[Value],
        value: &Value,
        depth: usize,
    ) -> Found {
        let count = items.len() as u64;
        match (name, rule) {
            ("items", Value::Array(schemas)) => {
                let rest = keywords.get("additionalItems").unwrap_or(&Value::Bool(true));
                for (index, item) in items.iter().enumerate() {
                    let schema = schemas.get(index).unwrap_or(rest);
                    self.value(ValuePath::Index(&at, index), schema, item, depth + 1)?;
                }
                Ok(())
            }
            ("items", schema) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.value(ValuePath::Index(&at, index), schema, item, depth + 1)
            }),
            ("contains", schema) => {
                for item in items {
                    if self.value(at, schema, item, depth + 1).is_ok() {
                        return Ok(());
                    }
                }
                self.wrong(at, "must contain an item of a certain kind", value)
            }
            ("uniqueItems", Value::Bool(true)) => {
                self.spend(weight(value))?;
                let different: BTreeSet<String> = items.iter().map(ToString::to_string).collect();
                let all = different.len() == items.len();
                if all { Ok(()) } else { self.wrong(at, "must not hold an item twice", value) }
            }
            ("minItems", rule) if rule.as_u64().is_some_and(|least| count < least) => {
                self.wrong(at, format_args!("must have {rule} items at least"), value)
            }
            ("maxItems", rule) if rule.as_u64().is_some_and(|most| count > most) => {
                self.wrong(at, format_args!("must have {rule} items at most"), value)
            }
            _ => Ok(()),
        }
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a keyword, what stands beside it, and the value, whole and taken apart"
    )]
    fn object(
        &mut self,
        at: ValuePath<'_>,
        name: &str,
        rule: &Value,
        keywords: &Map<String, Value>,
        object: &Map<String, Value>,
        value: &Value,
        depth: usize,
    ) -> Found {
        let count = object.len() as u64;
        match (name, rule) {
            ("required", Value::Array(names)) => {
                for name in names.iter().filter_map(Value::as_str) {
                    if !self.has(object, name)? {
                        let reason = format!("{} property is missing and required", quote_text(name));
                        return self.wrong(at, reason, value);
                    }
                }
                Ok(())
            }
            ("properties", Value::Object(schemas)) => {
                for (key, schema) in schemas {
                    if self.has(object, key)?
                        && let Some(value) = object.get(key)
                    {
                        self.value(ValuePath::Key(&at, key), schema, value, depth + 1)?;
                    }
                }
                Ok(())
            }
            ("patternProperties", Value::Object(schemas)) => {
                for (key, value) in object {
                    for (rule, schema) in schemas {
                        if self.budget.matches(rule, key)? {
                            self.value(ValuePath::Key(&at, key), schema, value, depth + 1)?;
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
                        self.spend(ERROR_STEPS)?;
                        let said = format!("{at} : additional property {} is not allowed", quote_text(key));
                        return Err(Mismatch::Wrong(said));
                    }
                    self.value(ValuePath::Key(&at, key), schema, value, depth + 1)?;
                }
                Ok(())
            }
            ("propertyNames", schema) => {
                for key in object.keys() {
                    self.budget.spend_bytes(key.len())?;
                    self.value(at, schema, &Value::String(key.clone()), depth + 1)?;
                }
                Ok(())
            }
            ("dependencies", Value::Object(rules)) => {
                for (key, rule) in rules {
                    if !self.has(object, key)? {
                        continue;
                    }
                    match rule {
                        Value::Array(_) => {
                            self.object(at, "required", rule, keywords, object, value, depth)?;
                        }
                        schema => self.value(at, schema, value, depth + 1)?,
                    }
                }
                Ok(())
            }
            ("if", schema) => {
                let branch = match self.value(at, schema, value, depth + 1) {
                    Ok(()) => "then",
                    Err(_) => "else",
                };
                keywords.get(branch).map_or(Ok(()), |schema| self.value(at, schema, value, depth + 1))
            }
            ("minProperties", rule) if rule.as_u64().is_some_and(|least| count < least) => {
                self.wrong(at, format_args!("must have {rule} properties at least"), value)
            }
            ("maxProperties", rule) if rule.as_u64().is_some_and(|most| count > most) => {
                self.wrong(at, format_args!("must have {rule} properties at most"), value)
            }
            _ => Ok(()),
        }
    }

    fn has(&mut self, object: &Map<String, Value>, key: &str) -> Result<bool, Mismatch> {
        self.budget.spend_bytes(key.len())?;
        Ok(object.contains_key(key))
    }

    fn is_declared(&mut self, keywords: &Map<String, Value>, key: &str) -> Result<bool, Mismatch> {
        if let Some(known) = keywords.get("properties").and_then(Value::as_object)
            && self.has(known, key)?
        {
            return Ok(true);
        }
        for rule in keywords.get("patternProperties").and_then(Value::as_object).into_iter().flatten() {
            if self.budget.matches(rule.0, key)? {
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
