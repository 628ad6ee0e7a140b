//! The harness against the table of hook tools (`runtime/hook/tests/typed.json`): a charm's tests get the answers
//! that its hooks will get.
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

/// Givens without a counterpart in a harness: bounds, other units of the machine, an operator's changes of a
/// relation.
const NOT_IN_A_HARNESS: [&str; 9] =
    ["limit", "opened", "subordinate", "removed", "dying", "suspended", "option", "application", "addresses"];

/// Functions that the SDK lacks or offers through a builder, or that return a path of the test's own.
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
    /// The ids of secrets, by their names in the table.
    secrets: BTreeMap<String, String>,
    /// The id of the first secret that a hook makes.
    drawn: String,
    cases: Vec<Case>,
}

/// One typed call.
#[derive(Deserialize)]
struct Case {
    tool: String,
    case: String,
    /// The differences from the plain world, in words.
    given: Vec<Vec<String>>,
    hook: Vec<String>,
    /// Tools that run before the call, in the same hook.
    before: Vec<String>,
    function: String,
    arguments: Value,
    /// The answer, as the journal writes it.
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
    // Effects of earlier hook tools, and failures at the commit, have no counterpart in a harness. The SDK does not
    // name a third application's bag, does not close one endpoint's ports, gives each failure a reason, and names
    // each secret. A harness takes an action's parameters by their paths, and runs batches as an event of their own.
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
