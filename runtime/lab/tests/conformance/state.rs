//! I and O: a charm's stored state for its unit (`docs/hook-model.md` 3.1, 5.11).

use periapt_host_api::{
    record::{HookStep, Operation},
    relation::BagKey,
    relation::BagOwner,
    state::StateKey,
};
use periapt_lab::{Action, Lab};

use crate::bench::{LOCAL, Related, started};

fn stored(lab: &Lab, key: &str) -> Option<String> {
    let key = StateKey { unit: "a/0".parse().unwrap(), key: key.to_owned() };
    lab.state().unwrap().state_entry(&key).map(|entry| entry.value.clone())
}

/// Returns a hook that writes a key, opens a port, stores a value, and reads it back.
fn effects() -> Vec<Action> {
    let tools =
        ["relation-set -r 0 colour=blue", "open-port 80", "state-set seen=1", "state-get --strict seen"];
    tools.iter().map(|line| Action::tool(line)).collect()
}

/// Checks for the relation key, the port and the stored state of [`effects`].
fn visible(bench: &Related) -> [bool; 3] {
    let state = bench.lab.state().unwrap();
    let key = BagKey { relation: bench.relation, owner: BagOwner::Unit("a/0".parse().unwrap()) };
    let bag = state.bag(&key).is_some_and(|bag| bag.settings.contains_key("colour"));
    [bag, !bench.lab.unit("a/0").unwrap().ports.is_empty(), stored(&bench.lab, "seen").is_some()]
}

#[test]
fn i01_of_a_failed_hook_nothing_is_visible() {
    let mut bench = Related::joined(1);
    let mut actions = effects();
    actions.push(Action::fail("out of luck"));
    bench.lab.script("a/0", "config-changed", actions).unwrap();
    bench.lab.configure("a", &[("colour", "blue")]).unwrap();
    bench.run();
    assert_eq!(visible(&bench), [false; 3]);
}

#[test]
fn i02_of_a_hook_that_succeeds_all_is_visible_at_once() {
    let mut bench = Related::joined(1);
    bench.lab.script("a/0", "config-changed", effects()).unwrap();
    bench.lab.configure("a", &[("colour", "blue")]).unwrap();
    let before = bench.lab.unit("a/0").unwrap().record.seq;
    bench.run();
    assert_eq!(visible(&bench), [true; 3]);
    assert_eq!(bench.lab.unit("a/0").unwrap().record.seq, before + 1, "by one commit");
}

#[test]
fn o11_state_beyond_its_bounds_is_refused_at_commit() {
    for (key, value) in [("k".repeat(300), "v".to_owned()), ("k".to_owned(), "v".repeat(70_000))] {
        let mut lab = started(LOCAL, 1);
        let set = Action::Tool(vec!["state-set".into(), format!("{key}={value}")]);
        lab.script("a/0", "config-changed", vec![Action::tool("state-set other=1"), set]).unwrap();
        lab.configure("a", &[("colour", "blue")]).unwrap();
        lab.run_until_idle().unwrap();
        let operation = &lab.unit("a/0").unwrap().record.operation;
        let Operation::Hook { step: HookStep::Failed(failure), .. } = operation else {
            panic!("{operation:?}")
        };
        assert!(
            failure.message.contains("are allowed") || failure.message.contains("must take"),
            "{}",
            failure.message
        );
        assert_eq!(stored(&lab, "other"), None);
    }
}

#[test]
fn state_outlives_hooks_and_agents_and_goes_with_its_unit() {
    // L-8
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "config-changed", vec![Action::tool("state-set seen=1")]).unwrap();
    lab.configure("a", &[("colour", "blue")]).unwrap();
    lab.run_until_idle().unwrap();
    lab.kill_agent("host").unwrap();
    lab.start_agent("host").unwrap();
    lab.script("a/0", "config-changed", vec![Action::tool("state-get --strict seen")]).unwrap();
    lab.configure("a", &[("colour", "green")]).unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.trace().last().unwrap().output_of("state-get").unwrap().stdout, "1\n");
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("a/0").is_err());
    assert_eq!(stored(&lab, "seen"), None);
}
