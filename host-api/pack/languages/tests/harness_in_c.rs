//! The harness for C against the table of hook tools (`runtime/hook/tests/typed.json`): a charm's tests get the
//! answers that its hooks will get.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

const TABLE: &str = include_str!("../../../../runtime/hook/tests/typed.json");

/// Givens without a counterpart in a harness: bounds, other units of the machine, an operator's changes of
/// applications.
const NOT_IN_A_HARNESS: [&str; 6] = ["limit", "opened", "subordinate", "option", "application", "addresses"];

/// Refusal reasons in the order of `periapt_reason`.
const REASONS: [&str; 14] = [
    "invalid-argument",
    "not-found",
    "permission-denied",
    "not-leader",
    "conflict",
    "already-exists",
    "limit-exceeded",
    "not-granted",
    "not-ready",
    "try-again",
    "wrong-context",
    "not-supported",
    "failed",
    "other",
];

#[test]
fn a_harness_answers_what_the_sdk_has_words_for_as_the_table_says() {
    let scratch = tempfile::tempdir().unwrap();
    let driver = compiled(scratch.path(), "driver");
    let table: Value = serde_json::from_str(TABLE).unwrap();
    let theirs = format!("secret:{}", table["secrets"]["theirs"].as_str().unwrap());
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for case in table["cases"].as_array().unwrap() {
        let Some(words) = arguments_of(case) else { continue };
        compared += 1;
        let told = ask(&driver, case, &theirs, &words);
        if !is(&told, &case["answer"]) {
            wrong.push(format!("{}: {words:?}\n  is  {told}\n  not {}", case["case"], case["answer"]));
        }
    }
    assert!(compared > 50, "{compared} cases were compared");
    assert!(wrong.is_empty(), "{} of {compared} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// Impossible states, which `try-hook` and all harnesses refuse with the same messages.
const IMPOSSIBLE: &str = include_str!("../../../../runtime/hook/tests/impossible.json");

/// The steps that the harness supports: it has no storage, no principal and no batches.
const STEPS: [&str; 6] = ["relate", "join", "change", "change-app", "depart", "end"];

#[test]
fn a_test_of_what_cannot_be_ends_with_what_would_be_right() {
    let scratch = tempfile::tempdir().unwrap();
    let driver = compiled(scratch.path(), "steps");
    let table: Value = serde_json::from_str(IMPOSSIBLE).unwrap();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for case in table["cases"].as_array().unwrap() {
        let words = |step: &Value| -> Vec<String> {
            let plain = |word: &Value| word.as_str().map_or_else(|| word.to_string(), str::to_owned);
            step.as_array().unwrap().iter().map(plain).collect()
        };
        let steps: Vec<Vec<String>> = case["steps"].as_array().into_iter().flatten().map(words).collect();
        if steps.is_empty() || steps.iter().any(|step| !STEPS.contains(&step[0].as_str())) {
            continue;
        }
        tried += 1;
        let output = Command::new(&driver).args(steps.iter().flatten()).output().unwrap();
        let told = (
            String::from_utf8_lossy(&output.stdout).lines().count(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        );
        // The driver writes a line for each step that succeeds.
        let expected = match case["says"].as_str() {
            Some(says) => (steps.len() - 1, format!("inconsistent: {says}\n")),
            None => (steps.len(), String::new()),
        };
        if told != expected || output.status.success() != case["says"].is_null() {
            wrong.push(format!("{}\n  is  {told:?}\n  not {expected:?}", case["case"]));
        }
    }
    assert!(tried > 12, "{tried} cases were tried");
    assert!(wrong.is_empty(), "{} of {tried} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// Compiles the SDK, its harness and the driver with this machine's compiler.
fn compiled(scratch: &Path, name: &str) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/harness_in_c");
    let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/c");
    let driver = scratch.join(name);
    let mut command = Command::new("cc");
    command
        .args(["-std=c11", "-g", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&driver)
        .arg(tests.join(format!("{name}.c")));
    for directory in ["include", "bindings", "testing"] {
        command.arg("-I").arg(sdk.join(directory));
    }
    for directory in ["src", "testing"] {
        let files = fs::read_dir(sdk.join(directory)).unwrap().map(|entry| entry.unwrap().path());
        command.args(files.filter(|path| path.extension().is_some_and(|extension| extension == "c")));
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    driver
}

/// Translates a case's call into arguments of the driver. Returns `None` if the SDK or its harness does not support
/// the call.
fn arguments_of(case: &Value) -> Option<Vec<String>> {
    let odd = |given: &Value| NOT_IN_A_HARNESS.contains(&given[0].as_str().unwrap());
    let name = case["case"].as_str().unwrap();
    // The harness names no units of a batch, and no secret of its own.
    let is_told = !["in a batch", "own label", "first reading", "was revoked", "one is named"]
        .iter()
        .any(|part| name.contains(part));
    if case["before"] != json!([]) || case["given"].as_array().unwrap().iter().any(odd) || !is_told {
        return None;
    }
    let (function, with) = (case["function"].as_str().unwrap(), case["arguments"].as_array().unwrap());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = |value: &Value| -> Vec<String> {
        value.as_array().unwrap().iter().flat_map(|pair| [text(&pair[0]), text(&pair[1])]).collect()
    };
    let words = match function {
        "config.get" if case["answer"].get("number").is_some() => return None,
        "config.get" if case["answer"].get("integer").is_some() => {
            vec!["config.integer".into(), text(&with[0])]
        }
        "config.get" => vec!["config.text".into(), text(&with[0])],
        "relations.get-value" => {
            let (kind, owner) = with[1].as_object().unwrap().iter().next().unwrap();
            vec![function.into(), text(&with[0]), kind.clone(), text(owner), text(&with[2])]
        }
        // The driver reads one key in place of a whole bag: the answer or the refusal is alike.
        "relations.get" => {
            let (kind, owner) = with[1].as_object().unwrap().iter().next().unwrap();
            let key = case["answer"]["Ok"].as_object().map_or("x", |bag| bag.keys().next().unwrap());
            vec!["relations.get-value".into(), text(&with[0]), kind.clone(), text(owner), key.into()]
        }
        "relations.set" => [vec![function.into(), text(&with[0]), text(&with[1])], pairs(&with[2])].concat(),
        "state.set" | "actions.set-results" => [vec![function.into()], pairs(&with[0])].concat(),
        "ports.open" | "ports.close" => match (&with[0]["tcp"], with[1] == json!([])) {
            (Value::Array(range), true) if range[0] == range[1] => vec![function.into(), text(&range[0])],
            _ => return None,
        },
        "secrets.get" => match (&with[0], &with[2]) {
            (Value::String(uri), Value::String(mode)) if mode == "tracked" => {
                let is_id = uri.len() == 20;
                vec!["secrets.tracked".into(), if is_id { format!("secret:{uri}") } else { uri.clone() }]
            }
            _ => return None,
        },
        "actions.fail" if with[0].is_null() => return None,
        "relations.ids"
        | "relations.members"
        | "relations.remote-application"
        | "status.set"
        | "status.set-application"
        | "status.set-application-version"
        | "leadership.is-leader"
        | "state.get"
        | "state.delete"
        | "actions.param"
        | "actions.log"
        | "actions.fail" => [vec![function.into()], with.iter().map(text).collect()].concat(),
        _ => return None,
    };
    Some(words)
}

fn ask(driver: &Path, case: &Value, theirs: &str, words: &[String]) -> String {
    let given: Vec<Vec<&str>> = case["given"]
        .as_array()
        .unwrap()
        .iter()
        .map(|words| words.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect())
        .collect();
    let leads = if given.contains(&vec!["leader"]) { "leads" } else { "follows" };
    let members = given.iter().find(|words| words[0] == "members");
    let members = members.map_or("b/0,b/1".to_owned(), |words| words[2..].join(","));
    let hook = |index: usize| case["hook"].get(index).and_then(Value::as_str).unwrap_or_default();
    let mut command = Command::new(driver);
    command.args([leads, hook(0), hook(1), &members, theirs]).args(words);
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
    said.trim_end_matches('\n').to_owned()
}

/// Returns true if the driver's answer is the case's.
fn is(told: &str, answer: &Value) -> bool {
    let (kind, rest) = told.split_once(' ').unwrap_or((told, ""));
    let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(refused) = answer.get("Err") {
        let (reason, text) = refused.as_object().unwrap().iter().next().unwrap();
        // The answer begins with the failed operation.
        let (number, message) = rest.split_once(' ').unwrap_or_default();
        let number: usize = number.parse().unwrap_or(usize::MAX);
        return kind == "refused"
            && REASONS.get(number) == Some(&reason.as_str())
            && message.ends_with(&format!(": {}", plain(text)));
    }
    let value = answer.get("Ok").unwrap_or(answer);
    let value = value.get("text").or_else(|| value.get("integer")).unwrap_or(value);
    match (kind, value) {
        ("" | "nothing", Value::Null) => true,
        ("text", Value::Object(bag)) => bag.values().next().is_some_and(|value| plain(value) == rest),
        // The content of a secret.
        ("text", Value::Array(pairs)) => plain(&pairs[0][1]) == rest,
        // A parameter as JSON text.
        ("text", value) => {
            plain(value) == rest || serde_json::from_str(rest).is_ok_and(|json: Value| json == *value)
        }
        ("number", value) => plain(value) == rest,
        ("true" | "false", value) => plain(value) == kind,
        ("list", Value::Array(all)) => all.iter().map(plain).collect::<Vec<_>>().join(" ") == rest,
        _ => false,
    }
}
