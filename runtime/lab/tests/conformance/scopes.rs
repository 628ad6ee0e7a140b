//! G: scopes as running units and their remote sides see them (`hook-model.md` 2.2 to 2.4).

use periapt_host_api::{ErrorCode, view::Membership};

use crate::bench::{LOCAL, REMOTE, Related, bag_of, charm, printed, started, tries};

#[test]
fn g03_who_enters_again_has_only_the_initial_values() {
    let mut bench = Related::joined(1);
    let relation = bench.relation;
    let initial = bag_of(&bench.lab, relation, "b/0");
    bench.lab.by_hand("b/0").unwrap().write(relation, &[("k", "v"), ("ingress-address", "")]).unwrap();
    assert_ne!(bag_of(&bench.lab, relation, "b/0"), initial);
    bench.lab.by_hand("b/0").unwrap().leave(relation).unwrap().enter(relation).unwrap();
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
    let error = bench.lab.by_hand("b/1").unwrap().enter(relation).unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::NotAlive);
    assert!(refusal.message.ends_with("relation is not alive"), "{}", refusal.message);
    // Nor does a running unit try to.
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
    bench.lab.by_hand("b/0").unwrap().leave(relation).unwrap();
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
    // A runner that starts anew is told the same, once, and does nothing on it.
    lab.crash_runner("host").unwrap();
    lab.run_until_idle().unwrap();
    let members = lab.mirror("host").unwrap().relations[&relation].members.clone();
    assert_eq!(members.keys().map(ToString::to_string).collect::<Vec<_>>(), ["a/0"]);
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
