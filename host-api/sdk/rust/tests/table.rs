//! The harness, asked what the table of hook tools asks of the host (`runtime/hook/tests/typed.json`): a charm's tests are answered
//! as its hooks will be.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

#[path = "table/call.rs"]
mod call;
#[path = "table/declared.rs"]
mod declared;
#[path = "table/scene.rs"]
mod scene;
#[path = "table/secrets.rs"]
mod secrets;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use scene::Scene;

/// The typed half of the table.
const PUBLISHED: &str = include_str!("../../../../runtime/hook/tests/typed.json");

/// What a harness has no counterpart of: bounds, other units of the machine, what operators do to a relation.
const NOT_IN_A_HARNESS: [&str; 9] =
    ["limit", "opened", "subordinate", "removed", "dying", "suspended", "option", "application", "addresses"];

/// Functions that the SDK has no word for or asks for by a builder of its own, or that answer with a place of the test's own.
const NOT_IN_THE_SDK: [&str; 12] = [
    "status.get-application",
    "leadership.get-settings",
    "leadership.set-settings",
    "identity.model-uuid",
    "network.get",
    "goal-state.get",
    "resources.get",
    "storage.get",
    "storage.list",
    "events.cancel",
    "events.emit-later",
    "events.pending",
];

#[derive(Deserialize)]
struct Table {
    /// Ids of secrets by the names that the table has for them.
    secrets: BTreeMap<String, String>,
    /// The id of the first that a hook makes.
    drawn: String,
    cases: Vec<Case>,
}

/// One typed call.
#[derive(Deserialize)]
struct Case {
    tool: String,
    case: String,
    /// What is otherwise than in the plain world, in words.
    given: Vec<Vec<String>>,
    hook: Vec<String>,
    /// Tools that were run before it, in the same hook.
    before: Vec<String>,
    function: String,
    arguments: Value,
    /// As the journal writes it.
    answer: Value,
}

#[test]
fn a_harness_answers_typed_calls_as_the_table_says() {
    let table: Table = serde_json::from_str(PUBLISHED).unwrap();
    let (mut wrong, mut asked) = (Vec::new(), 0);
    for case in table.cases.iter().filter(|case| is_comparable(case)) {
        asked += 1;
        let told = Scene::new(&table, &case.given).ask(&case.hook, &case.function, &case.arguments);
        if told != case.answer {
            let Case { tool, case: about, function, arguments, answer, .. } = case;
            wrong.push(format!("{tool}: {about}: {function} {arguments}\n  is  {told}\n  not {answer}"));
        }
    }
    assert!(asked > 80, "{asked} cases were compared");
    assert!(wrong.is_empty(), "{} of {asked} differ\n{}", wrong.len(), wrong.join("\n"));
}

fn is_comparable(case: &Case) -> bool {
    let odd =
        |given: &Vec<String>| given.first().is_some_and(|word| NOT_IN_A_HARNESS.contains(&word.as_str()));
    // What an argv tool did before has no counterpart, and what fails only when it is committed has none either.
    // The SDK names no third application's bag, and says nothing of one endpoint's ports when it closes them; it
    // gives each failure a reason, and names each secret. A harness takes an action's parameters by their paths, and
    // tells batches by an event of their own.
    let unsaid = [
        "in a batch",
        "who does not exist",
        "the same of an application",
        "for one of",
        "a text by its path",
        "one is named",
    ];
    case.before.is_empty()
        && !unsaid.iter().any(|part| case.case.contains(part))
        && (case.function != "actions.fail" || !case.arguments[0].is_null())
        && !case.given.iter().any(odd)
        && !case.case.contains("when the hook commits")
        && !NOT_IN_THE_SDK.contains(&case.function.as_str())
}
