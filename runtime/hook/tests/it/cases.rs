//! Each case of the table, through both interfaces.

use std::collections::{BTreeMap, BTreeSet};

use periapt_hook::{CallAnswer, HookContext, HookResults, ToolOutput};
use serde_json::{Value, json};

use crate::{
    scene,
    table::{Case, Tool, tools, words},
    typed,
    world::now,
};

/// The file of unsupported tools.
const UNSUPPORTED: &str = "unsupported";

#[test]
fn every_tool_says_and_does_what_its_table_says() {
    let mut wrong = Vec::new();
    for Tool { name, cases } in tools() {
        for case in &cases {
            let differences = argv(case).into_iter().chain(typed_twin(case));
            wrong.extend(differences.map(|text| format!("{name}: {}: {}\n  {text}", case.case, case.run)));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_tool_has_a_table_with_a_case_of_each_exit_code() {
    let mut tables: BTreeMap<String, Vec<Case>> =
        tools().into_iter().map(|tool| (tool.name, tool.cases)).collect();
    let unsupported = tables.remove(UNSUPPORTED).unwrap();
    let known: BTreeSet<String> = periapt_hook::hook_tools().map(|tool| tool.name.to_owned()).collect();
    assert_eq!(tables.keys().cloned().collect::<BTreeSet<_>>(), known, "files, and tools that there are");
    for (name, cases) in &tables {
        let other = cases.iter().find(|case| words(&case.run).first() != Some(name));
        assert!(other.is_none(), "{name}: {other:?} is about another tool");
        let codes: BTreeSet<u8> = cases.iter().map(|case| case.code).collect();
        assert_eq!(codes, BTreeSet::from([0, 1, 2]), "{name} has cases of these exit codes");
    }
    for case in &unsupported {
        assert!(!known.contains(&words(&case.run)[0]), "{} is a tool with a table of its own", case.run);
    }
}

/// A hook in progress, with its files.
pub(crate) struct Stage {
    pub(crate) context: HookContext,
    files: BTreeMap<String, String>,
}

impl Stage {
    /// Builds a case's scene, and runs the tools of `before`.
    pub(crate) fn of(case: &Case) -> Self {
        let context = scene::scene(case).start().context;
        let mut stage = Self { context, files: case.files.clone() };
        for line in &case.before {
            let output = stage.run(line, None);
            assert_eq!(output.exit_code, 0, "{}: {line}: {}", case.case, output.stderr);
        }
        stage
    }

    fn run(&mut self, line: &str, stdin: Option<&str>) -> ToolOutput {
        let words = words(line);
        let (name, arguments) = words.split_first().unwrap();
        self.ask(|context| context.run_tool(now(), name, arguments, stdin.map(str::as_bytes)))
    }

    /// Makes a call, and answers its requests to the host.
    pub(crate) fn ask<T>(&mut self, mut call: impl FnMut(&mut HookContext) -> CallAnswer<T>) -> T {
        loop {
            match call(&mut self.context) {
                CallAnswer::Ready(answer) => return answer,
                CallAnswer::NeedsLease => panic!("no scene has a lease that is about to end"),
                CallAnswer::NeedsSecret(key) => self.context.secret_fetched(key, scene::content(key)),
                CallAnswer::NeedsResource(key) => {
                    let fetched = scene::resource(&key).map(drop);
                    self.context.resource_fetched(key, fetched);
                }
                CallAnswer::NeedsFile(request) => {
                    let answer = scene::answer(&mut self.files, &request);
                    self.context.file_answered(request, answer);
                }
            }
        }
    }
}

fn argv(case: &Case) -> Vec<String> {
    let mut stage = Stage::of(case);
    let output = stage.run(&case.run, case.stdin.as_deref());
    let mut differences = Differences::default();
    differences.between("exit code", &output.exit_code, &case.code);
    differences.between("standard output", &output.stdout, &case.stdout);
    differences.between("standard error", &output.stderr, &case.stderr());
    let written = stage.files.iter().filter(|(path, content)| case.files.get(*path) != Some(*content));
    let written: BTreeMap<_, _> = written.map(|(path, content)| (path.clone(), content.clone())).collect();
    differences.between("files", &written, &case.wrote);
    differences.left(case, stage.context.finish());
    differences.0
}

fn typed_twin(case: &Case) -> Vec<String> {
    let Some(call) = &case.typed else {
        assert!(case.answer.is_none() && case.refused.is_none(), "{}: whose answer?", case.case);
        return Vec::new();
    };
    let (function, arguments) = call.first_key_value().unwrap();
    let mut stage = Stage::of(case);
    let answer = typed::call(&mut stage, function, arguments.clone());
    let expected = match (&case.refused, &case.answer) {
        (Some(kind), _) => json!({"Err": {kind: case.error.clone().unwrap_or_default()}}),
        (None, Some(answer)) => answer.clone(),
        (None, None) => json!({"Ok": null}),
    };
    let mut differences = Differences::default();
    differences.between(function, &answer, &expected);
    let refused_argument = answer.pointer("/Err/invalid-argument").is_some();
    let refused = answer.get("Err").is_some();
    // An error variant and an exit code agree (T-9).
    differences.between("exit code 2", &refused_argument, &(refused && case.code == 2));
    differences.left(case, stage.context.finish());
    differences.0.into_iter().map(|text| format!("typed: {text}")).collect()
}

#[derive(Default)]
struct Differences(Vec<String>);

impl Differences {
    fn between<T: PartialEq + std::fmt::Debug>(&mut self, what: &str, found: &T, expected: &T) {
        if found != expected {
            self.0.push(format!("{what}\n    is     {found:?}\n    not    {expected:?}"));
        }
    }

    /// Compares the outcome of the hook, through either interface.
    fn left(&mut self, case: &Case, gathered: HookResults) {
        let effects = without_empty(serde_json::to_value(&gathered.effects).unwrap());
        self.between("effects", &effects, &without_empty(case.effects.clone()));
        let early = gathered.early.iter().map(|(_, effect)| serde_json::to_value(effect).unwrap());
        self.between("early effects", &early.collect::<Vec<_>>(), &case.early);
        let left = gathered.action.unwrap_or_default();
        let failed = left.failed.map(|reason| ("failed".to_owned(), reason.into()));
        let values = ("values".to_owned(), Value::Object(left.values));
        let action = without_empty([values].into_iter().chain(failed).collect());
        self.between("action", &action, &without_empty(case.action.clone()));
    }
}

/// Drops empty maps and lists. A null stays, because it deletes a key of the state.
fn without_empty(value: Value) -> Value {
    let empty = |value: &Value| match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    };
    match value {
        Value::Null => json!({}),
        Value::Object(map) => {
            let kept = map.into_iter().map(|(key, value)| match value {
                Value::Null => (key, Value::Null),
                value => (key, without_empty(value)),
            });
            Value::Object(kept.filter(|(_, value)| !empty(value)).collect())
        }
        other => other,
    }
}
