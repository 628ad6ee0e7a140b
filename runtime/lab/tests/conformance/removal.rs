//! Removal and subordinates (`docs/hook-model.md` 1.12, R-16 to R-18, section 0).

use std::time::Duration;

use periapt_host_api::{
    command::{Command, Force, RelationSelector},
    status::Life,
};
use periapt_lab::{Lab, invariants};

use crate::bench::{LOCAL, PEERED, Related, START_UP, charm, does, fails, lab, runs, started};

pub(crate) const SUBORDINATE: &str = "
name: helper
subordinate: true
requires:
  host: {interface: juju-info, scope: container}
";

/// Returns a model with `a/0` and its subordinate `s/0`.
fn accompanied() -> Lab {
    let mut lab = started(LOCAL, 1);
    lab.deploy("s", &charm(SUBORDINATE), 0).unwrap();
    lab.integrate("s", "a").unwrap();
    lab.run_until_idle().unwrap();
    lab
}

#[test]
fn g06_a_principal_that_enters_a_container_scope_gets_its_subordinate() {
    let lab = accompanied();
    let expected = [
        "install",
        "host-relation-created",
        "leader-elected",
        "config-changed",
        "start",
        "host-relation-joined a/0",
        "host-relation-changed a/0",
    ];
    assert_eq!(runs(&lab, "s/0"), expected);
    assert_eq!(lab.state().unwrap().units_of(&"s".parse().unwrap()).count(), 1);
    assert_eq!(invariants::rest_violations(lab.state().unwrap()), []);
}

#[test]
fn f20_the_principals_side_of_the_implicit_endpoint_runs_no_hooks() {
    let mut lab = accompanied();
    let relation = lab.state().unwrap().relations().next().unwrap().id;
    assert_eq!(lab.state().unwrap().member_count(&relation), 2, "both are in its scope");
    lab.remove_relation(relation).unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.state().unwrap().relation(&relation).is_none());
    assert_eq!(runs(&lab, "a/0"), START_UP, "neither at its beginning nor at its end");
}

#[test]
fn f21_relations_with_others_are_wound_up_before_that_with_peers() {
    let mut lab = started(PEERED, 2);
    lab.deploy("b", &charm(crate::bench::REMOTE), 1).unwrap();
    lab.integrate("a:db", "b:db").unwrap();
    lab.run_until_idle().unwrap();
    let before = ["a/0", "a/1"].map(|unit| (unit, runs(&lab, unit).len()));
    // All hooks are due at the same time: neither unit knew of the other's removal when it began.
    lab.remove_application("a").unwrap();
    lab.run_until_idle().unwrap();
    for (unit, before) in before {
        let peer = if unit == "a/0" { "a/1" } else { "a/0" };
        let peer = format!("ring-relation-departed {peer}");
        let expected = ["db-relation-departed b/0", "db-relation-broken", &peer, "stop", "remove"];
        assert_eq!(runs(&lab, unit)[before..], expected, "{unit}");
    }
    assert_eq!(invariants::order_violations(lab.trace()), []);
}

#[test]
fn f23_a_dying_principal_waits_for_its_subordinate() {
    let mut lab = accompanied();
    lab.hold("s/0").unwrap();
    lab.remove_unit("a/0").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.unit("s/0").unwrap().life, Life::Dying);
    assert_eq!(lab.unit("a/0").unwrap().life, Life::Dying, "its hooks are done, and it is still there");
    assert_eq!(runs(&lab, "a/0")[START_UP.len()..], ["stop", "remove"]);
    lab.release("s/0").unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("s/0").is_err() && lab.unit("a/0").is_err());
}

#[test]
fn f24_a_subordinate_that_nothing_ties_to_its_principal_goes() {
    let mut lab = accompanied();
    let relation = lab.state().unwrap().relations().next().unwrap().id;
    lab.remove_relation(relation).unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("s/0").is_err());
    assert!(lab.unit("a/0").is_ok());
    let last = runs(&lab, "s/0").split_off(7);
    assert_eq!(last, ["host-relation-departed a/0", "host-relation-broken", "stop", "remove"]);
}

#[test]
fn f25_a_subordinate_stays_while_its_principals_relation_lives() {
    let mut lab = accompanied();
    lab.deploy("b", &charm(crate::bench::REMOTE), 1).unwrap();
    let of_a = lab.state().unwrap().relations().next().unwrap().id;
    lab.integrate("s", "b").unwrap();
    lab.run_until_idle().unwrap();
    let of_b = lab.state().unwrap().relations().map(|relation| relation.id).find(|id| *id != of_a).unwrap();
    let before = runs(&lab, "s/0");
    lab.remove_relation(of_b).unwrap();
    lab.run_until_idle().unwrap();
    assert!(lab.unit("s/1").is_err(), "the one beside b goes with its relation");
    assert_eq!(lab.unit("s/0").unwrap().life, Life::Alive);
    assert_eq!(runs(&lab, "s/0"), before, "the one beside a hears nothing of it");
}

#[test]
fn g08_each_of_two_pairs_sees_its_own_counterpart_alone() {
    let mut lab = started(LOCAL, 2);
    lab.deploy("s", &charm(SUBORDINATE), 0).unwrap();
    lab.integrate("s", "a").unwrap();
    lab.run_until_idle().unwrap();
    for (subordinate, principal) in [("s/0", "a/0"), ("s/1", "a/1")] {
        assert_eq!(lab.unit(subordinate).unwrap().principal.as_ref().unwrap().to_string(), principal);
        let met: Vec<_> = runs(&lab, subordinate).into_iter().filter(|hook| hook.contains(" a/")).collect();
        let expected = ["joined", "changed"].map(|step| format!("host-relation-{step} {principal}"));
        assert_eq!(met, expected, "{subordinate}");
    }
}

#[test]
fn f19_a_dying_unit_departs_from_its_peers_and_does_not_break() {
    let mut lab = started(PEERED, 2);
    let before = runs(&lab, "a/1").len();
    lab.remove_unit("a/1").unwrap();
    lab.run_until_idle().unwrap();
    assert_eq!(runs(&lab, "a/1")[before..], ["ring-relation-departed a/0", "stop", "remove"]);
    assert_eq!(runs(&lab, "a/0").last().unwrap(), "ring-relation-departed a/1");
}

#[test]
fn q07_an_application_goes_with_its_last_unit() {
    let mut lab = started(PEERED, 3);
    lab.remove_application("a").unwrap();
    assert!(lab.state().unwrap().application(&"a".parse().unwrap()).is_some());
    lab.run_until_idle().unwrap();
    let state = lab.state().unwrap();
    assert!(state.application(&"a".parse().unwrap()).is_none());
    assert_eq!((state.unit_count(), state.machines().count(), state.relations().count()), (0, 0, 0));
    assert_eq!(state.relations_with_bags().count(), 0);
    assert_eq!(invariants::order_violations(lab.trace()), []);
}

#[test]
fn q04_a_unit_that_nobody_looked_after_goes_at_once() {
    let mut lab = lab();
    lab.kill_agent("host").unwrap();
    lab.deploy("a", &charm(LOCAL), 1).unwrap();
    lab.run_until_idle().unwrap();
    lab.remove_unit("a/0").unwrap();
    assert!(lab.unit("a/0").is_err());
}

#[test]
fn g19_a_forced_removal_takes_a_stuck_unit_out_and_its_charm_still_says_good_bye() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v")]).unwrap();
    bench.news();
    bench.lab.hold("a/0").unwrap();
    let force = Some(Force { max_wait: 60 });
    let selector = RelationSelector::Id(relation);
    bench.lab.command(&Command::RemoveRelation { relation: selector, force }).unwrap();
    bench.lab.advance(Duration::from_secs(59)).unwrap();
    assert!(bench.lab.state().unwrap().member_count(&relation) > 0);
    bench.lab.advance(Duration::from_secs(2)).unwrap();
    assert_eq!(bench.lab.state().unwrap().member_count(&relation), 0);
    // The last known bags serve the last hooks (section 0).
    bench.lab.script("a/0", "db-relation-departed", does("relation-get k b/0")).unwrap();
    bench.lab.release("a/0").unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0", "db-relation-broken"]);
    let departed = &bench.lab.trace()[bench.lab.trace().len() - 2];
    assert_eq!(departed.output_of("relation-get").unwrap().stdout.trim(), "v");
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    bench.run();
    assert!(bench.lab.state().unwrap().relation(&relation).is_none());
}

#[test]
fn a_forced_removal_of_a_unit_does_not_wait_for_its_failed_hook() {
    let mut lab = started(LOCAL, 1);
    lab.script("a/0", "stop", fails()).unwrap();
    let unit = "a/0".parse().unwrap();
    lab.command(&Command::RemoveUnit {
        unit,
        force: Some(Force { max_wait: 30 }),
        storage: Default::default(),
    })
    .unwrap();
    lab.advance(Duration::from_secs(29)).unwrap();
    assert!(lab.unit("a/0").is_ok());
    lab.advance(Duration::from_secs(2)).unwrap();
    assert!(lab.unit("a/0").is_err());
    assert!(!lab.is_looked_after("a/0"));
}
