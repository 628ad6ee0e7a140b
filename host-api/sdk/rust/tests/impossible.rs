//! The table of impossible states (`runtime/hook/tests/impossible.json`), which `try-hook` and all harnesses read: a
//! test that sets one up fails, with a message that says what would be right.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test that panics has failed, as it should"
)]

use std::{
    collections::BTreeMap,
    panic::{AssertUnwindSafe, catch_unwind},
};

use periapt_sdk::{
    Charm, Event, Relation, RelationChanged,
    testing::{Batch, Harness},
};
use serde::Deserialize;
use serde_json::Value;

const TABLE: &str = include_str!("../../../../runtime/hook/tests/impossible.json");

#[derive(Deserialize)]
struct Table {
    /// The `charmcraft.yaml` of each charm, by name.
    charms: BTreeMap<String, String>,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    case: String,
    #[serde(default)]
    steps: Vec<Vec<Value>>,
    says: Option<String>,
}

#[derive(Default)]
struct Idle;

impl Charm for Idle {}

/// Returns the message of a step's panic.
fn panic_message(step: impl FnOnce()) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(step)).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.unwrap_or_else(|| "a panic that is no text".to_owned()))
}

fn does(unit: &mut Harness<Idle>, relations: &mut Vec<Relation>, charm: &str, step: &[Value]) {
    let text = |index: usize| step[index].as_str().unwrap();
    let relation = || relations[usize::try_from(step[1].as_u64().unwrap()).unwrap()].clone();
    // Steps of the set-up, without a hook.
    let set_up = match text(0) {
        "relate" => {
            relations.push(unit.relate(text(1), text(2)));
            return;
        }
        "declares" => Some(unit.declares(charm)),
        "config" => Some(unit.config(text(1), "x")),
        "resource" => Some(unit.resource(text(1), "/dev/null".as_ref(), "")),
        "storage" => Some(unit.storage(text(1), "/srv".as_ref())),
        "principal" => Some(unit.principal(text(1))),
        _ => None,
    };
    if set_up.is_some() {
        return;
    }
    let ended = match text(0) {
        "action" => unit.action(text(1), &[]),
        "join" => unit.join(&relation(), text(2), &[]),
        "change" => unit.change(&relation(), text(2), &[]),
        "change-app" => unit.change_app(&relation(), &[]),
        "depart" => unit.depart(&relation(), text(2)),
        "end" => unit.end(&relation()),
        "batch" => {
            let batch = match text(2) {
                "join" => Batch::new().join(text(3), &[]),
                "change" => Batch::new().change(text(3), &[]),
                _ => Batch::new().depart(text(3)),
            };
            unit.batch(&relation(), batch)
        }
        other => unreachable!("{other}"),
    };
    ended.unwrap();
}

#[test]
fn a_test_of_what_cannot_be_fails_and_is_told_what_would_be_right() {
    let table: Table = serde_json::from_str(TABLE).unwrap();
    let (charm, mut wrong, mut tried) = (&table.charms["app"], Vec::new(), 0);
    for Case { case, steps, says } in table.cases.iter().filter(|case| !case.steps.is_empty()) {
        tried += 1;
        let (mut unit, mut relations) = (Harness::<Idle>::new("app/0"), Vec::new());
        let (last, before) = steps.split_last().unwrap();
        before.iter().for_each(|step| does(&mut unit, &mut relations, charm, step));
        let is = panic_message(|| does(&mut unit, &mut relations, charm, last));
        let not = says.as_ref().map(|says| format!("inconsistent: {says}"));
        if is != not {
            wrong.push(format!("{case}\n  is  {is:?}\n  not {not:?}"));
        }
    }
    assert!(tried > 20, "{tried} cases were tried");
    assert!(wrong.is_empty(), "{} of {tried} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn an_event_that_a_test_makes_itself_is_about_a_remote_unit() {
    let mut unit = Harness::<Idle>::new("app/0");
    let relation = unit.relate("ring", "app");
    let itself = RelationChanged { relation, app: "app".into(), unit: Some("app/0".into()) };
    let is = panic_message(|| drop(unit.run(Event::RelationChanged(itself))));
    assert!(is.unwrap().contains("app/0 cannot be a remote unit of relation 0: it is the unit itself"));
    let is = panic_message(|| drop(Harness::<Idle>::new("app")));
    assert_eq!(is.unwrap(), "inconsistent: \"app\" is no unit's name; one is written app/0");
}
