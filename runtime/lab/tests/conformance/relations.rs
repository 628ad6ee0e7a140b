//! F: hooks in relations (`docs/hook-model.md` 2.5, 2.6).

use periapt_host_api::{
    UnitName,
    event::Event,
    relation::{BagKey, BagOwner},
};
use periapt_lab::{Action, Lab};

use crate::bench::{REMOTE, Related, charm, fails};

/// Returns the departing unit of a unit's last departed hook.
fn departing(lab: &Lab, unit: &str) -> UnitName {
    let departed = lab.trace().iter().rev().filter(|traced| traced.unit.to_string() == unit);
    departed
        .filter_map(|traced| match &traced.event {
            Event::RelationDeparted { departing_unit, .. } => Some(departing_unit.clone()),
            _ => None,
        })
        .next()
        .unwrap()
}

#[test]
fn f01_members_join_one_by_one_each_with_its_change() {
    let mut bench = Related::new(2);
    let expected = [
        "db-relation-created",
        "db-relation-joined b/0",
        "db-relation-changed b/0",
        "db-relation-joined b/1",
        "db-relation-changed b/1",
    ];
    assert_eq!(bench.news(), expected);
}

#[test]
fn f02_changed_follows_joined_whatever_else_happens_in_the_relation() {
    let mut bench = Related::new(2);
    let relation = bench.relation;
    while !bench.lab.hooks_of("a/0").contains(&"db-relation-joined b/0".to_owned()) {
        assert!(bench.lab.step("a/0").unwrap());
    }
    // All at once: b/0 leaves, b/1 writes, the application's bag is written, and the relation is removed.
    bench.lab.manual_unit("b/1").unwrap().write(relation, &[("k", "v")]).unwrap();
    bench.lab.manual_unit("b/0").unwrap().write_application(relation, &[("k", "v")]).unwrap();
    bench.lab.remove_relation(relation).unwrap();
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    let hooks = bench.news();
    let joined = hooks.iter().position(|hook| hook == "db-relation-joined b/0").unwrap();
    assert_eq!(
        hooks[joined..],
        [
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "db-relation-departed b/0",
            "db-relation-broken"
        ]
    );
}

#[test]
fn f02_a_failed_changed_holds_the_relation_up_until_it_is_passed_over() {
    let mut bench = Related::new(2);
    bench.lab.configure_model(&[("automatically-retry-hooks", "false")]).unwrap();
    bench.lab.script("a/0", "db-relation-changed", fails()).unwrap();
    assert_eq!(bench.news(), ["db-relation-created", "db-relation-joined b/0"]);
    bench.lab.unscript_all();
    bench.lab.resolve("a/0", periapt_host_api::command::ResolveMode::NoRetry).unwrap();
    assert_eq!(
        bench.news(),
        ["db-relation-changed b/0", "db-relation-joined b/1", "db-relation-changed b/1"]
    );
}

#[test]
fn f05_a_unit_that_never_wrote_a_key_is_a_change_all_the_same() {
    let mut bench = Related::new(1);
    let key = BagKey { relation: bench.relation, owner: BagOwner::Unit("b/0".parse().unwrap()) };
    // Its bag is empty, without even the controller's keys.
    bench.lab.alter_bag(&key, |bag| bag.settings.clear()).unwrap();
    assert_eq!(bench.news(), ["db-relation-created", "db-relation-joined b/0", "db-relation-changed b/0"]);
}

#[test]
fn f06_writing_the_value_that_is_there_is_no_change() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    assert!(bench.news().is_empty());
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("absent", "")]).unwrap();
    assert!(bench.news().is_empty());
}

#[test]
fn f07_several_writes_in_one_hook_are_one_change_that_sees_the_last() {
    let mut bench = Related::joined(1);
    bench.lab.script("a/0", "db-relation-changed", vec![Action::tool("relation-get k")]).unwrap();
    bench.lab.release("b/0").unwrap();
    // The remote unit now runs by itself, and writes in its first hook.
    let writes = ["relation-set -r 0 k=1", "relation-set -r 0 k=2", "relation-set -r 0 k=3"];
    bench.lab.script("b/0", "install", writes.map(Action::tool).to_vec()).unwrap();
    bench.lab.hold("a/0").unwrap();
    bench.run();
    bench.lab.release("a/0").unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    let output = bench.lab.trace().last().unwrap().output_of("relation-get").unwrap().clone();
    assert_eq!(output.stdout.trim(), "3");
}

#[test]
fn f07_writes_of_several_hooks_before_the_readers_turn_are_one_change_too() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    for value in ["1", "2", "3"] {
        bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", value)]).unwrap();
    }
    bench.lab.script("a/0", "db-relation-changed", vec![Action::tool("relation-get k")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    let traced = bench.lab.trace().last().unwrap();
    assert_eq!(traced.output_of("relation-get").unwrap().stdout.trim(), "3");
    assert_eq!(traced.coalesced.len(), 1, "what was merged is told: {:?}", traced.coalesced);
}

#[test]
fn f08_an_application_bag_that_was_never_written_is_no_change() {
    let mut bench = Related::new(1);
    assert!(!bench.news().contains(&"db-relation-changed".to_owned()));
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write_application(relation, &[("k", "v")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed"], "else this test shows nothing");
}

#[test]
fn f08_an_application_bag_that_was_written_before_comes_before_all_members() {
    let mut bench = Related::unheard(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write_application(relation, &[("k", "v")]).unwrap();
    bench.lab.release("a/0").unwrap();
    let expected =
        ["db-relation-created", "db-relation-changed", "db-relation-joined b/0", "db-relation-changed b/0"];
    assert_eq!(bench.news(), expected);
}

#[test]
fn f10_a_version_that_is_lower_than_the_recorded_one_is_a_change() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "1")]).unwrap();
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "2")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    let key = BagKey { relation, owner: BagOwner::Unit("b/0".parse().unwrap()) };
    bench.lab.alter_bag(&key, |bag| bag.version -= 1).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    assert!(bench.news().is_empty());
}

#[test]
fn f11_a_dying_relation_departs_breaks_and_is_left() {
    let mut bench = Related::joined(1);
    bench.lab.remove_relation(bench.relation).unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0", "db-relation-broken"]);
    let state = bench.lab.state().unwrap();
    assert_eq!(state.membership(&bench.relation, &"a/0".parse().unwrap()), None);
    assert!(state.relation(&bench.relation).is_some(), "b/0 is still in its scope");
    assert_eq!(departing(&bench.lab, "a/0").to_string(), "b/0");
}

#[test]
fn f12_a_relation_without_members_only_breaks_and_is_removed() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0"]);
    bench.lab.remove_relation(relation).unwrap();
    assert_eq!(bench.news(), ["db-relation-broken"]);
    let state = bench.lab.state().unwrap();
    assert!(state.relation(&relation).is_none());
    assert_eq!(state.bag_count(&relation), 0);
}

#[test]
fn f18_a_removed_remote_unit_is_the_one_who_departs() {
    let mut bench = Related::joined(2);
    bench.lab.remove_unit("b/1").unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/1"]);
    assert_eq!(departing(&bench.lab, "a/0").to_string(), "b/1");
}

#[test]
fn f18_a_local_unit_that_dies_departs_itself() {
    let mut bench = Related::joined(1);
    bench.lab.remove_unit("a/0").unwrap();
    let hooks = bench.news();
    assert_eq!(hooks, ["db-relation-departed b/0", "db-relation-broken", "stop", "remove"]);
    assert_eq!(departing(&bench.lab, "a/0").to_string(), "a/0");
}

#[test]
fn r13_who_enters_again_has_a_new_bag() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    bench.run();
    bench.news();
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap().enter(relation).unwrap();
    // It left and came back between two looks: the reader sees a member with another bag.
    bench.lab.script("a/0", "db-relation-changed", vec![Action::tool("relation-get - b/0")]).unwrap();
    assert_eq!(bench.news(), ["db-relation-changed b/0"]);
    let output = bench.lab.trace().last().unwrap().output_of("relation-get").unwrap().stdout.clone();
    assert!(output.contains("ingress-address") && !output.contains("k:"), "{output}");
}

#[test]
fn r24_a_member_that_left_before_its_change_is_joined_changed_and_departed() {
    let mut bench = Related::new(1);
    let relation = bench.relation;
    while !bench.lab.hooks_of("a/0").contains(&"db-relation-joined b/0".to_owned()) {
        assert!(bench.lab.step("a/0").unwrap());
    }
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    let expected = [
        "db-relation-created",
        "db-relation-joined b/0",
        "db-relation-changed b/0",
        "db-relation-departed b/0",
    ];
    assert_eq!(bench.news(), expected);
}

#[test]
fn r15_the_bag_of_who_left_is_readable_until_the_end() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    bench.news();
    let read = vec![Action::tool("relation-get k b/0"), Action::tool("relation-list")];
    bench.lab.script("a/0", "db-relation-departed", read.clone()).unwrap();
    bench.lab.script("a/0", "db-relation-broken", vec![Action::tool("relation-list")]).unwrap();
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    bench.lab.remove_relation(relation).unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0", "db-relation-broken"]);
    let [departed, broken] = bench.lab.trace().last_chunk::<2>().unwrap();
    assert_eq!(departed.output_of("relation-get").unwrap().stdout.trim(), "v");
    assert_eq!(departed.output_of("relation-list").unwrap().stdout, "", "who departs is not listed");
    assert_eq!(broken.output_of("relation-list").unwrap().stdout, "");
}

#[test]
fn two_real_sides_tell_each_other_all() {
    let mut lab = crate::bench::lab();
    lab.add_agent("far").unwrap();
    let greeting = |hook: &mut periapt_lab::Hook<'_>| -> Result<(), String> {
        if matches!(hook.event(), Event::RelationJoined { .. }) {
            let unit = hook.unit().to_string();
            hook.tool(&format!("relation-set from={unit}"))?;
        }
        Ok(())
    };
    lab.deploy_to("a", &charm(crate::bench::LOCAL).with_handler(greeting), 2, "host").unwrap();
    lab.deploy_to("b", &charm(REMOTE).with_handler(greeting), 2, "far").unwrap();
    let relation = lab.integrate("a", "b").unwrap();
    lab.run_until_idle().unwrap();
    for unit in ["a/0", "a/1", "b/0", "b/1"] {
        let owner = BagOwner::Unit(unit.parse().unwrap());
        let bag = lab.state().unwrap().bag(&BagKey { relation, owner }).unwrap();
        assert_eq!(bag.settings["from"], unit);
    }
    assert_eq!(periapt_lab::invariants::rest_violations(lab.state().unwrap()), []);
    assert_eq!(periapt_lab::invariants::order_violations(lab.trace()), []);
}
