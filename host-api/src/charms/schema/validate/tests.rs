use serde_json::json;

use super::*;

fn checked(schema: &Value, value: &Value) -> Result<(), String> {
    super::super::check("params", schema).unwrap();
    validate(schema, value, &mut ValidationBudget::default()).map_err(|mismatch| mismatch.to_string())
}

fn refused(schema: Value, value: Value) -> String {
    checked(&schema, &value).unwrap_err()
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
        assert_eq!(checked(&schema, &value), Ok(()), "{value}");
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
        (json!({"items": {"type": "null"}}), json!([null, 1]), "(root).1 : must be of type null, given 1"),
        (
            json!({"items": [{}], "additionalItems": false}),
            json!([1, 2]),
            "(root).1 : is not allowed, given 2",
        ),
        (json!({"uniqueItems": true}), json!([1, 1]), "(root) : must not hold an item twice, given [1,1]"),
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
fn what_a_rule_weighs_is_paid_for() {
    let many = json!(vec![0; 32_000]);
    let numbers: Vec<u32> = (1..100_000).collect();
    let text = "x".repeat(900_000);
    for schema in [
        json!({"contains": {"enum": numbers}}),
        json!({"contains": {"const": text}}),
        json!({"contains": {"not": {"not": {"const": text}}}}),
        json!({"contains": {"type": vec!["string"; 100_000]}}),
        json!({"anyOf": vec![json!({"uniqueItems": true, "not": {}}); 900]}),
    ] {
        let message = refused(schema, many.clone());
        let bounded = message == "(root) : takes too long to check" || message.len() < 700;
        assert!(bounded, "{}", message.len());
    }
    let enumerated = json!({"contains": {"enum": (1..100_000).collect::<Vec<u32>>()}});
    assert_eq!(refused(enumerated, many.clone()), "(root) : takes too long to check");
    assert_eq!(refused(json!({"contains": {"const": text}}), many), "(root) : takes too long to check");
}

#[test]
fn a_pattern_that_is_slow_on_a_long_text_is_paid_for() {
    // The pattern's automaton has a state for each of the last letters that were an "a".
    let schema = json!({"pattern": "^[ab]*a[ab]{200}c$"});
    assert_eq!(refused(schema.clone(), json!("ab".repeat(30_000))), "(root) : takes too long to check");
    assert_eq!(checked(&schema, &json!(format!("{}c", "a".repeat(250)))), Ok(()));
    for usual in [r"^\w+$", r"^[a-z][a-z0-9-]*$", r"^\p{L}{1,3}$"] {
        assert_eq!(
            checked(&json!({"items": {"pattern": usual}}), &json!(vec!["abc"; 100])),
            Ok(()),
            "{usual}"
        );
    }
    let long = json!({"pattern": r"^[\s\S]*$"});
    assert_eq!(checked(&long, &json!("x".repeat(20_000))), Ok(()));
}

#[test]
fn what_could_not_be_checked_is_not_taken() {
    let heavy = json!({"items": {"allOf": vec![json!({"maxLength": 9}); 1_000]}});
    let schema = json!({"not": heavy});
    assert_eq!(refused(schema, json!(vec!["a"; 10_000])), "(root) : takes too long to check");
}

#[test]
fn checks_of_one_request_share_what_they_may_cost() {
    let schema = json!({"items": {"maxLength": 9}});
    let value = json!(vec!["a"; 50_000]);
    let mut budget = ValidationBudget::default();
    assert_eq!(validate(&schema, &value, &mut budget), Ok(()));
    assert_eq!(validate(&schema, &value, &mut budget), Err(Mismatch::TooLong));
    assert_eq!(validate(&schema, &json!([]), &mut budget), Err(Mismatch::TooLong));
}

#[test]
fn long_values_keys_and_rules_are_quoted_in_part() {
    let long = "\u{fc}".repeat(10_000);
    let message = refused(json!({"type": "null"}), json!(long));
    assert!(message.len() < 300 && message.ends_with("..."), "{message}");
    let key = |value: Value| Value::Object([(long.clone(), value)].into_iter().collect());
    for (schema, value) in [
        (json!({"const": long}), json!(1)),
        (json!({"enum": [{"a": [long]}]}), json!([{"b": {"c": long}}])),
        (json!({"required": [long]}), json!({})),
        (json!({"additionalProperties": false}), key(json!(1))),
        (json!({"propertyNames": {"maxLength": 3}}), key(json!(1))),
        (json!({"additionalProperties": {"additionalProperties": {"const": 1}}}), key(key(json!(2)))),
    ] {
        let message = refused(schema, value);
        assert!(message.len() < 900, "{} {message}", message.len());
    }
}
