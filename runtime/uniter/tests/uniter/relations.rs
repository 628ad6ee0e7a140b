//! Tests of the hooks of relations and their order (`docs/hook-model.md` 2.2 to 2.6).

use periapt_host_api::{
    UnitName,
    status::{Life, RelationState},
};
use periapt_uniter::{Decision, HookEnd, MAX_SCOPES_PER_COMMIT};

use crate::{World, check};

/// Returns a started unit with a relation to `b` and these known members.
fn related(members: &[&str]) -> World {
    let mut world = World::started();
    world.relate("db", "b");
    for unit in members {
        world.join("db", unit);
    }
    world.settle();
    world.take_trace();
    world
}

#[test]
fn f01_members_join_one_by_one_each_with_its_change() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.join("db", "b/1");
    check(
        &mut world,
        &[
            "db-relation-created",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "db-relation-joined b/1",
            "db-relation-changed b/1",
        ],
    );
    assert!(world.is_member("db"));
}

#[test]
fn r28_entering_a_scope_and_owing_created_are_one_write() {
    let mut world = World::started();
    world.relate("db", "b");
    let Decision::Commit(progress) = world.decide() else { panic!() };
    assert!(progress.transitions.enter_scope.contains(&world.id("db")));
    assert!(!progress.record.relations[&world.id("db")].created);
}

#[test]
fn many_scopes_are_entered_in_bounded_commits() {
    let mut world = World::started();
    let count = MAX_SCOPES_PER_COMMIT + 5;
    for number in 0..count {
        world.relate("db", &format!("b{number}"));
    }
    for expected in [MAX_SCOPES_PER_COMMIT, 5] {
        let Decision::Commit(progress) = world.decide() else { panic!() };
        assert_eq!(progress.transitions.enter_scope.len(), expected);
        world.step();
    }
    world.settle();
    assert_eq!(world.take_trace().len(), count);
}

#[test]
fn f02_changed_follows_joined_whatever_else_happens_in_the_relation() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/1");
    world.step_until(|world| world.committed.last().is_some_and(|event| event.kind() == "relation-joined"));
    world.take_trace();
    world.join("db", "b/0");
    world.write("db", "b");
    check(
        &mut world,
        &[
            "db-relation-changed b/1",
            "db-relation-changed b",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
        ],
    );
}

#[test]
fn r24_a_unit_that_left_before_its_change_ran_is_still_told_in_full() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.step_until(|world| world.committed.last().is_some_and(|event| event.kind() == "relation-joined"));
    world.take_trace();
    world.remove_relation("db");
    world.leave("db", "b/0");
    check(&mut world, &["db-relation-changed b/0", "db-relation-departed b/0", "db-relation-broken"]);
}

#[test]
fn f05_a_unit_that_never_wrote_a_key_still_changes_after_it_joined() {
    let mut world = related(&[]);
    world.join("db", "b/0");
    check(&mut world, &["db-relation-joined b/0", "db-relation-changed b/0"]);
    check(&mut world, &[]);
}

#[test]
fn f06_an_equal_version_is_no_hook() {
    let mut world = related(&["b/0"]);
    world.write_key("db", "b/0", "k", "v");
    check(&mut world, &["db-relation-changed b/0"]);
    let version = world.version("db", "b/0");
    world.write_key("db", "b/0", "k", "v");
    assert_eq!(world.version("db", "b/0"), version);
    check(&mut world, &[]);
}

#[test]
fn f07_several_writes_are_one_hook_that_says_what_it_merged() {
    let mut world = related(&["b/0"]);
    for _ in 0..3 {
        world.write("db", "b/0");
    }
    assert_eq!(world.due().coalesced, ["3 changes of b/0's settings"]);
    check(&mut world, &["db-relation-changed b/0"]);
    world.write("db", "b/0");
    assert!(world.due().coalesced.is_empty(), "one change is merged with nothing");
}

#[test]
fn r31_a_write_that_lands_while_its_hook_runs_is_one_more_hook() {
    let mut world = related(&["b/0"]);
    world.write("db", "b/0");
    let run = world.due();
    world.write("db", "b/0");
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["db-relation-changed b/0"]);
}

#[test]
fn f08_an_application_bag_that_was_never_written_is_no_hook() {
    let mut world = related(&["b/0"]);
    check(&mut world, &[]);
    world.write("db", "b");
    world.write("db", "b");
    assert_eq!(world.due().coalesced, ["2 changes of b's settings"]);
    check(&mut world, &["db-relation-changed b"]);
    check(&mut world, &[]);
}

#[test]
fn r22_a_unit_does_not_watch_its_own_side() {
    let mut world = related(&["b/0"]);
    world.write("db", "a");
    world.write("db", "a/0");
    check(&mut world, &[]);
}

#[test]
fn r21_peers_watch_the_bag_of_their_own_application() {
    let mut world = World::started_with_peers();
    world.join("ring", "a/1");
    check(&mut world, &["ring-relation-joined a/1", "ring-relation-changed a/1"]);
    world.write("ring", "a");
    world.write("ring", "a/0");
    check(&mut world, &["ring-relation-changed a"]);
}

#[test]
fn f10_a_lower_version_is_a_difference_too() {
    let mut world = related(&["b/0"]);
    world.write("db", "b/0");
    world.write("db", "b/0");
    check(&mut world, &["db-relation-changed b/0"]);
    let version = world.version("db", "b/0");
    world.restore_bag("db", "b/0", version - 1);
    check(&mut world, &["db-relation-changed b/0"]);
    check(&mut world, &[]);
}

#[test]
fn f11_a_dying_relation_departs_and_breaks_and_is_left() {
    let mut world = related(&["b/0"]);
    world.remove_relation("db");
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    assert!(!world.is_member("db"));
    assert!(world.record().relations.is_empty());
    check(&mut world, &[]);
}

#[test]
fn f12_a_dying_relation_without_members_only_breaks() {
    let mut world = related(&["b/0"]);
    world.leave("db", "b/0");
    check(&mut world, &["db-relation-departed b/0"]);
    world.remove_relation("db");
    check(&mut world, &["db-relation-broken"]);
}

#[test]
fn f13_f16_suspension_breaks_once_and_resuming_begins_anew() {
    let mut world = World::started();
    world.relate_across("db", "b");
    world.join("db", "b/0");
    let begun = ["db-relation-created", "db-relation-joined b/0", "db-relation-changed b/0"];
    check(&mut world, &begun);
    world.suspend("b", true);
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    assert!(!world.is_member("db"));
    world.leave("db", "b/0");
    world.suspend("b", false);
    world.join("db", "b/0");
    check(&mut world, &begun);
    world.suspend("b", true);
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    world.remove_relation("db");
    check(&mut world, &[]);
}

#[test]
fn f14_a_relation_that_was_never_entered_gives_no_hook() {
    let mut world = World::started();
    world.relate_across("db", "b");
    world.join("db", "b/0");
    world.suspend("b", true);
    assert!(world.relation("db").unwrap().suspended);
    check(&mut world, &[]);
}

#[test]
fn r33_a_relation_that_ends_before_created_ran_is_left_without_a_hook() {
    let mut world = World::started();
    world.relate("db", "b");
    world.step();
    assert!(world.is_member("db"));
    world.remove_relation("db");
    check(&mut world, &[]);
    assert!(!world.is_member("db") && world.record().relations.is_empty());
}

#[test]
fn f18_a_removed_remote_unit_is_the_one_who_departs() {
    let mut world = related(&["b/0", "b/1"]);
    world.remove("b/1");
    check(&mut world, &["db-relation-departed b/1"]);
}

#[test]
fn changes_that_nobody_was_told_of_are_shown_with_the_departure() {
    let mut world = related(&["b/0"]);
    world.write("db", "b/0");
    world.write("db", "b/0");
    world.leave("db", "b/0");
    assert_eq!(world.due().coalesced, ["2 changes of b/0's settings that it left behind"]);
}

#[test]
fn r32_the_local_unit_departs_when_its_application_goes() {
    let mut world = related(&["b/0"]);
    // The controller handles the relations before the units.
    world.begin_to_remove_application();
    assert_eq!((world.application().life, world.me().life), (Life::Dying, Life::Alive));
    let expected = ["db-relation-departed b/0 (a/0 leaves)", "db-relation-broken", "stop", "remove"];
    check(&mut world, &expected);
}

#[test]
fn r19_a_unit_that_came_and_went_between_two_looks_is_not_told_of() {
    let mut world = related(&[]);
    world.join("db", "b/0");
    world.leave("db", "b/0");
    check(&mut world, &[]);
}

#[test]
fn f20_the_implicit_endpoint_is_entered_and_left_without_hooks() {
    let mut world = World::started();
    world.relate("juju-info", "b");
    world.join("juju-info", "b/0");
    check(&mut world, &[]);
    assert!(world.is_member("juju-info"), "the other side must see it");
    assert!(world.record().relations.is_empty());
    world.remove_relation("juju-info");
    check(&mut world, &[]);
    assert!(!world.is_member("juju-info"));
}

#[test]
fn f20_a_requirer_called_juju_info_is_an_ordinary_endpoint() {
    let mut world = World::declaring("requires:\n  juju-info: {interface: juju-info}\n");
    world.settle();
    world.take_trace();
    world.application_for("b");
    world.integrate("a:juju-info", "b:juju-info");
    check(&mut world, &["juju-info-relation-created"]);
}

#[test]
fn f21_r27_relations_are_served_by_id_and_peers_last() {
    let mut world = World::peered();
    world.relate("web", "c");
    world.relate("db", "b");
    world.join("ring", "a/1");
    world.join("web", "c/0");
    world.join("db", "b/0");
    assert!(world.id("ring") < world.id("web") && world.id("web") < world.id("db"));
    check(
        &mut world,
        &[
            "deploy 1",
            "install",
            "web-relation-created",
            "db-relation-created",
            "ring-relation-created",
            "leader-elected",
            "config-changed",
            "start",
            "web-relation-joined c/0",
            "web-relation-changed c/0",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "ring-relation-joined a/1",
            "ring-relation-changed a/1",
        ],
    );
}

#[test]
fn a_relation_removed_by_force_departs_and_breaks_all_the_same() {
    let mut world = related(&["b/0", "b/1"]);
    world.remove_by_force("db");
    // The relation stays in the view, dead and with its bags, until the record does not name it any
    // more.
    let (relation, id) = (world.relation("db").unwrap(), world.id("db"));
    assert_eq!((relation.life, relation.state), (Life::Dead, RelationState::Dying));
    assert!(relation.members.is_empty());
    assert_eq!(world.view.bags.keys().filter(|bag| bag.relation == id).count(), 3);
    check(&mut world, &["db-relation-departed b/0", "db-relation-departed b/1", "db-relation-broken"]);
    assert!(world.record().relations.is_empty());
    assert!(world.relation("db").is_none());
    assert!(world.view.bags.keys().all(|bag| bag.relation != id));
}

#[test]
fn a_relation_removed_by_force_while_it_breaks_is_forgotten() {
    let mut world = related(&[]);
    world.remove_relation("db");
    let run = world.due();
    assert!(run.seen.relation_exists);
    world.remove_by_force("db");
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &[]);
    assert!(world.record().relations.is_empty());
}

#[test]
fn r26_peers_depart_and_do_not_break_when_their_application_goes() {
    let mut world = World::started_with_peers();
    world.join("ring", "a/1");
    world.settle();
    world.take_trace();
    world.begin_to_remove_application();
    let relation = world.relation("ring").unwrap();
    assert_eq!((relation.life, world.me().life), (Life::Dying, Life::Alive));
    check(&mut world, &["ring-relation-departed a/1 (a/0 leaves)", "stop", "remove"]);
}

#[test]
fn r34_relations_of_other_applications_are_none_of_its_business() {
    let mut world = World::started();
    // The unit's agent also has a unit of `b`, and sees its relations.
    let id = world.relate_others();
    assert!(world.view.relations[&id].members.len() == 2);
    check(&mut world, &[]);
    assert!(!world.has_member(id, "a/0"));
}

#[test]
fn u3_a_member_is_recorded_with_the_version_of_the_decision() {
    let mut world = related(&[]);
    world.join("db", "b/0");
    let version = world.version("db", "b/0");
    let run = world.due();
    assert_eq!(run.seen.bag_version, version);
    world.write("db", "b/0");
    world.end(&run, HookEnd::Handled { status_set: false });
    let b0: UnitName = "b/0".parse().unwrap();
    assert_eq!(world.record().relations[&world.id("db")].members.get(&b0), Some(&version));
    check(&mut world, &["db-relation-changed b/0"]);
    assert_eq!(world.record().relations[&world.id("db")].members.get(&b0), Some(&(version + 1)));
}

#[test]
fn r30_a_bag_of_an_earlier_version_differs_as_after_a_backup_was_restored() {
    let mut world = related(&["b/0"]);
    let version = world.version("db", "b/0");
    world.write("db", "b/0");
    check(&mut world, &["db-relation-changed b/0"]);
    world.restore_bag("db", "b/0", version);
    check(&mut world, &["db-relation-changed b/0"]);
    // A later write makes another difference.
    world.write("db", "b/0");
    check(&mut world, &["db-relation-changed b/0"]);
    check(&mut world, &[]);
}
