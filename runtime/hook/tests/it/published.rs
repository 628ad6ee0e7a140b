//! The typed half of the table as data, `tests/typed.json`. The harness of each SDK is tested against it, each in its
//! own language.

use std::fs;

use serde_json::{Value, json};

use crate::table::{Case, SECRETS, drawn, secret, tools, words};

const PUBLISHED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/typed.json");

#[test]
fn what_harnesses_are_held_against_is_the_table() {
    let mut cases = Vec::new();
    for tool in tools() {
        cases.extend(tool.cases.iter().filter_map(|case| typed(&tool.name, case)));
    }
    let secrets: serde_json::Map<_, _> = SECRETS
        .iter()
        .map(|(name, number)| ((*name).to_owned(), secret(*number).to_string().into()))
        .collect();
    // One line for each case, so that a changed case is a changed line in a diff.
    let lines: Vec<_> = cases.iter().map(Value::to_string).collect();
    let (secrets, drawn) = (Value::Object(secrets), json!(drawn()));
    let text = format!(
        "{{\n\"secrets\": {secrets},\n\"drawn\": {drawn},\n\"cases\": [\n{}\n]\n}}\n",
        lines.join(",\n")
    );
    if std::env::var_os("PERIAPT_UPDATE").is_some() {
        fs::write(PUBLISHED, &text).unwrap();
    }
    assert!(
        fs::read_to_string(PUBLISHED).unwrap() == text,
        "tests/typed.json is behind: `PERIAPT_UPDATE=1 cargo nextest run -p periapt-hook harnesses`"
    );
}

/// Returns a case's typed call with its scene and its answer.
fn typed(tool: &str, case: &Case) -> Option<Value> {
    let (function, arguments) = case.typed.iter().flatten().next()?;
    let answer = match (&case.refused, &case.answer) {
        (Some(kind), _) => json!({"Err": {kind: case.error}}),
        (None, Some(answer)) => answer.clone(),
        (None, None) => json!({"Ok": null}),
    };
    let given: Vec<_> = case.given.iter().map(|line| words(line)).collect();
    Some(json!({
        "tool": tool,
        "case": case.case,
        "given": given,
        "hook": words(case.hook.as_deref().unwrap_or_default()),
        "before": case.before,
        "function": function,
        "arguments": arguments,
        "answer": answer,
    }))
}
