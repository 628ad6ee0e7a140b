//! G: scopes as running units and their remote sides see them (`docs/hook-model.md` 2.2 to 2.4).

use periapt_host_api::{
    ErrorCode,
    command::{Command, Force},
    view::Membership,
};
use periapt_lab::Lab;

use crate::bench::{LOCAL, REMOTE, Related, bag_of, charm, printed, refused, started, tries};

/// Removes a unit at once, whatever it does.
fn force_out(lab: &mut Lab, unit: &str) {
    let (unit, force) = (unit.parse().unwrap(), Some(Force { max_wait: 0 }));
    lab.command(&Command::RemoveUnit { unit, force, storage: Default::default() }).unwrap();
    lab.run_until_idle().unwrap();
}

#[test]
fn g03_who_enters_again_has_only_the_initial_values() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    let initial = bag_of(&bench.lab, relation, "b/0");
    bench.lab.manual_unit("b/0").unwrap().write(relation, &[("k", "v"), ("ingress-address", "")]).unwrap();
    assert_ne!(bag_of(&bench.lab, relation, "b/0"), initial);
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap().enter(relation).unwrap();
    assert_eq!(bag_of(&bench.lab, relation, "b/0"), initial);
    assert!(initial.contains_key("ingress-address"), "{initial:?}");
}

#[test]
fn g04_nobody_enters_a_dying_relation() {
    let mut bench = Related::unheard(1);
    let relation = bench.relation;
    bench.lab.add_units("b", 1).unwrap();
    bench.lab.hold("b/1").unwrap();
    bench.run();
    bench.lab.remove_relation(relation).unwrap();
    let error = bench.lab.manual_unit("b/1").unwrap().enter(relation).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::NotAlive);
    assert!(refusal.message.ends_with("relation is not alive"), "{}", refusal.message);
    // A running unit does not try to, either.
    bench.lab.release("a/0").unwrap();
    assert!(bench.news().is_empty());
    assert_eq!(bench.lab.state().unwrap().member_count(&relation), 1);
}

#[test]
fn g05_a_dying_relation_is_removed_with_the_second_of_two_that_leave() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.remove_relation(relation).unwrap();
    assert_eq!(bench.lab.state().unwrap().member_count(&relation), 2);
    bench.run();
    assert_eq!(bench.lab.state().unwrap().member_count(&relation), 1);
    assert!(bench.lab.state().unwrap().relation(&relation).is_some());
    bench.lab.manual_unit("b/0").unwrap().leave(relation).unwrap();
    bench.run();
    assert!(bench.lab.state().unwrap().relation(&relation).is_none());
}

#[test]
fn g09_who_is_told_to_die_is_seen_to_leave_and_is_still_counted() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    bench.lab.remove_unit("b/0").unwrap();
    assert_eq!(bench.news(), ["db-relation-departed b/0"], "its own agent has done nothing yet");
    let state = bench.lab.state().unwrap();
    assert_eq!(state.member_count(&relation), 2);
    assert_eq!(state.membership(&relation, &"b/0".parse().unwrap()), Some(Membership::Departing));
}

#[test]
fn g10_with_nobody_in_scope_the_first_news_is_that_there_is_nobody() {
    let mut lab = started(LOCAL, 1);
    lab.deploy("b", &charm(REMOTE), 0).unwrap();
    let relation = lab.integrate("a:db", "b:db").unwrap();
    let lines = ["relation-list --format=json"];
    lab.script("a/0", "db-relation-created", tries(&lines)).unwrap();
    let before = lab.hooks_of("a/0").len();
    lab.run_until_idle().unwrap();
    assert_eq!(lab.hooks_of("a/0")[before..], ["db-relation-created"]);
    printed(&lab, lines[0], "[]\n");
    let record = &lab.unit("a/0").unwrap().record.relations[&relation];
    assert!(record.created && record.members.is_empty());
    // A restarted runner gets the same view, and does nothing more.
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    let members = lab.mirror("host").unwrap().relations[&relation].members.clone();
    assert_eq!(members.keys().map(|unit| unit.to_string()).collect::<Vec<_>>(), ["a/0"]);
    assert_eq!(lab.hooks_of("a/0").len(), before + 1);
}

#[test]
fn g16_what_a_non_leader_writes_to_its_applications_bag_is_refused_and_not_stored() {
    let mut lab = started(LOCAL, 2);
    lab.deploy("b", &charm(REMOTE), 1).unwrap();
    let relation = lab.integrate("a:db", "b:db").unwrap();
    let leader =
        lab.state().unwrap().application(&"a".parse().unwrap()).unwrap().leader.clone().unwrap().unit;
    let other = if leader.number() == 0 { "a/1" } else { "a/0" };
    lab.script(other, "db-relation-created", tries(&["relation-set --app k=v"])).unwrap();
    lab.run_until_idle().unwrap();
    crate::bench::refused(&lab, "relation-set --app k=v", 1, "cannot write relation settings");
    let owner = periapt_host_api::relation::BagOwner::Application("a".parse().unwrap());
    assert!(lab.state().unwrap().bag(&periapt_host_api::relation::BagKey { relation, owner }).is_none());
    assert!(!lab.hooks_of("b/0").contains(&"db-relation-changed".to_owned()));
}

#[test]
fn r15_the_bag_of_a_unit_that_was_forced_out_is_readable_until_the_relation_is_removed() {
    let mut bench = Related::joined(1);
    bench.lab.manual_unit("b/0").unwrap().write(bench.relation, &[("k", "v")]).unwrap();
    let line = format!("relation-get -r {} k b/0", bench.relation);
    bench.lab.script("a/0", "db-relation-departed", tries(&[&line])).unwrap();
    bench.lab.script("a/0", "config-changed", tries(&[&line])).unwrap();
    force_out(&mut bench.lab, "b/0");
    assert_eq!(bench.news().last().unwrap(), "db-relation-departed b/0");
    printed(&bench.lab, &line, "v\n");
    bench.lab.configure("a", &[("colour", "blue")]).unwrap();
    assert_eq!(bench.news(), ["config-changed"]);
    printed(&bench.lab, &line, "v\n");
}

#[test]
fn r15_the_bag_of_a_subordinate_that_was_forced_out_is_readable_to_its_principal_alone() {
    const PRINCIPAL: &str = "
name: principal
provides:
  logs: {interface: logs, scope: container}
config:
  options:
    colour: {type: string, default: red}
";
    const BESIDE: &str = "
name: beside
subordinate: true
requires:
  logs: {interface: logs, scope: container}
";
    // Both principals are on one agent, whose units share a view.
    let mut lab = started(PRINCIPAL, 2);
    lab.deploy("s", &charm(BESIDE), 0).unwrap();
    let relation = lab.integrate("a:logs", "s:logs").unwrap();
    lab.run_until_idle().unwrap();
    for (subordinate, principal, other) in [("s/0", "a/0", "a/1"), ("s/1", "a/1", "a/0")] {
        assert_eq!(lab.unit(subordinate).unwrap().principal, Some(principal.parse().unwrap()));
        lab.manual_unit(subordinate).unwrap().write(relation, &[("k", subordinate)]).unwrap();
        let line = format!("relation-get -r {relation} k {subordinate}");
        lab.script(principal, "logs-relation-departed", tries(&[&line])).unwrap();
        force_out(&mut lab, subordinate);
        assert!(lab.unit(subordinate).is_err());
        assert_eq!(*lab.hooks_of(principal).last().unwrap(), format!("logs-relation-departed {subordinate}"));
        printed(&lab, &line, &format!("{subordinate}\n"));
        // The principal has run departed, and the relation is alive.
        let told = |lab: &mut Lab, unit: &str, colour: &str| {
            lab.unscript_all();
            lab.script(unit, "config-changed", tries(&[&line])).unwrap();
            lab.configure("a", &[("colour", &format!("{colour}-{subordinate}"))]).unwrap();
            lab.run_until_idle().unwrap();
        };
        told(&mut lab, principal, "blue");
        printed(&lab, &line, &format!("{subordinate}\n"));
        told(&mut lab, other, "green");
        refused(&lab, &line, 1, "permission denied");
    }
}
