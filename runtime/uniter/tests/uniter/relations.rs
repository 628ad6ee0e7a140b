//! What runs in relations, and in which order (`hook-model.md` 2.2 to 2.6).

use periapt_host_api::{RelationId, UnitName, relation::Role, status::Life, view::Membership};
use periapt_uniter::{Decision, HookEnd, MAX_SCOPES_PER_COMMIT};

use crate::{World, check};

/// A started unit with a relation to `b`, of which these units are in scope and known.
fn related(members: &[&str]) -> World {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    for unit in members {
        world.join(1, unit, 1);
    }
    world.settle();
    world.take_trace();
    world
}

#[test]
fn f01_members_join_one_by_one_each_with_its_change() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    world.join(1, "b/0", 1);
    world.join(1, "b/1", 1);
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
    assert!(world.is_member(1));
}

#[test]
fn r28_entering_a_scope_and_owing_created_are_one_write() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    let Decision::Commit(progress) = world.decide() else { panic!() };
    assert!(progress.transitions.enter_scope.contains(&RelationId(1)));
    assert!(!progress.record.relations[&RelationId(1)].created);
}

#[test]
fn many_scopes_are_entered_in_bounded_commits() {
    let mut world = World::started();
    let count = u32::try_from(MAX_SCOPES_PER_COMMIT).unwrap() + 5;
    for id in 0..count {
        world.relate(id, "db", Some("b"));
    }
    for expected in [MAX_SCOPES_PER_COMMIT, 5] {
        let Decision::Commit(progress) = world.decide() else { panic!() };
        assert_eq!(progress.transitions.enter_scope.len(), expected);
        world.step();
    }
    world.settle();
    assert_eq!(world.take_trace().len(), count as usize);
}

#[test]
fn f02_changed_follows_joined_whatever_else_happens_in_the_relation() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    world.join(1, "b/1", 1);
    world.step_until(|world| world.committed.last().is_some_and(|event| event.kind() == "relation-joined"));
    world.take_trace();
    world.write(1, "b", 4);
    world.join(1, "b/0", 1);
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
    world.relate(1, "db", Some("b"));
    world.join(1, "b/0", 1);
    world.step_until(|world| world.committed.last().is_some_and(|event| event.kind() == "relation-joined"));
    world.take_trace();
    world.relation(1).life = Life::Dying;
    world.leave(1, "b/0");
    check(&mut world, &["db-relation-changed b/0", "db-relation-departed b/0", "db-relation-broken"]);
}

#[test]
fn f05_a_unit_that_never_wrote_a_key_still_changes_after_it_joined() {
    let mut world = related(&[]);
    world.join(1, "b/0", 0);
    check(&mut world, &["db-relation-joined b/0", "db-relation-changed b/0"]);
    check(&mut world, &[]);
}

#[test]
fn f06_an_equal_version_is_no_hook() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 1);
    check(&mut world, &[]);
}

#[test]
fn f07_several_writes_are_one_hook_that_says_what_it_merged() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 4);
    assert_eq!(world.due().coalesced, ["3 changes of b/0's settings"]);
    check(&mut world, &["db-relation-changed b/0"]);
    world.write(1, "b/0", 5);
    assert!(world.due().coalesced.is_empty(), "one change is merged with nothing");
}

#[test]
fn r31_a_write_that_lands_while_its_hook_runs_is_one_more_hook() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 2);
    let run = world.due();
    world.write(1, "b/0", 3);
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["db-relation-changed b/0"]);
}

#[test]
fn f08_an_application_bag_that_was_never_written_is_no_hook() {
    let mut world = related(&[]);
    world.write(1, "b", 0);
    check(&mut world, &[]);
    world.write(1, "b", 2);
    assert_eq!(world.due().coalesced, ["2 changes of b's settings"]);
    check(&mut world, &["db-relation-changed b"]);
    check(&mut world, &[]);
}

#[test]
fn r22_a_unit_does_not_watch_its_own_side() {
    let mut world = related(&["b/0"]);
    world.write(1, "a", 3);
    world.write(1, "a/0", 3);
    check(&mut world, &[]);
}

#[test]
fn r21_peers_watch_the_bag_of_their_own_application() {
    let mut world = World::started();
    world.relate(0, "ring", None);
    world.join(0, "a/1", 1);
    check(&mut world, &["ring-relation-created", "ring-relation-joined a/1", "ring-relation-changed a/1"]);
    world.write(0, "a", 1);
    world.write(0, "a/0", 1);
    check(&mut world, &["ring-relation-changed a"]);
}

#[test]
fn f10_a_lower_version_is_a_difference_too() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 9);
    check(&mut world, &["db-relation-changed b/0"]);
    world.write(1, "b/0", 4);
    check(&mut world, &["db-relation-changed b/0"]);
    check(&mut world, &[]);
}

#[test]
fn f11_a_dying_relation_departs_and_breaks_and_is_left() {
    let mut world = related(&["b/0"]);
    world.relation(1).life = Life::Dying;
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    assert!(!world.is_member(1));
    assert!(world.record().relations.is_empty());
    check(&mut world, &[]);
}

#[test]
fn f12_a_dying_relation_without_members_only_breaks() {
    let mut world = related(&["b/0"]);
    world.leave(1, "b/0");
    check(&mut world, &["db-relation-departed b/0"]);
    world.relation(1).life = Life::Dying;
    check(&mut world, &["db-relation-broken"]);
}

#[test]
fn f13_f16_suspension_breaks_once_and_resuming_begins_anew() {
    let mut world = related(&["b/0"]);
    world.relation(1).suspended = true;
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    assert!(!world.is_member(1));
    world.relation(1).suspended = false;
    check(&mut world, &["db-relation-created", "db-relation-joined b/0", "db-relation-changed b/0"]);
    world.relation(1).suspended = true;
    check(&mut world, &["db-relation-departed b/0", "db-relation-broken"]);
    world.relation(1).life = Life::Dying;
    check(&mut world, &[]);
}

#[test]
fn f14_a_relation_that_was_never_entered_gives_no_hook() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    world.relation(1).suspended = true;
    world.join(1, "b/0", 1);
    check(&mut world, &[]);
}

#[test]
fn r33_a_relation_that_ends_before_created_ran_is_left_without_a_hook() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    world.step();
    assert!(world.is_member(1));
    world.relation(1).life = Life::Dying;
    check(&mut world, &[]);
    assert!(!world.is_member(1) && world.record().relations.is_empty());
}

#[test]
fn f18_a_removed_remote_unit_is_the_one_who_departs() {
    let mut world = related(&["b/0", "b/1"]);
    world.relation(1).members.insert("b/1".parse().unwrap(), Membership::Departing);
    check(&mut world, &["db-relation-departed b/1"]);
}

#[test]
fn changes_that_nobody_was_told_of_are_shown_with_the_departure() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 3);
    world.leave(1, "b/0");
    assert_eq!(world.due().coalesced, ["2 changes of b/0's settings that it left behind"]);
}

#[test]
fn r32_the_local_unit_departs_when_its_application_goes() {
    let mut world = related(&["b/0"]);
    world.application().life = Life::Dying;
    world.relation(1).life = Life::Dying;
    check(&mut world, &["db-relation-departed b/0 (a/0 leaves)", "db-relation-broken"]);
}

#[test]
fn r19_a_unit_that_came_and_went_between_two_looks_is_not_told_of() {
    let mut world = related(&[]);
    world.join(1, "b/0", 1);
    world.leave(1, "b/0");
    check(&mut world, &[]);
}

#[test]
fn f20_the_implicit_endpoint_is_entered_and_left_without_hooks() {
    let mut world = World::started();
    world.relate(1, "juju-info", Some("b"));
    world.join(1, "b/0", 1);
    check(&mut world, &[]);
    assert!(world.is_member(1), "the other side must see it");
    assert!(world.record().relations.is_empty());
    world.relation(1).life = Life::Dying;
    check(&mut world, &[]);
    assert!(!world.is_member(1));
}

#[test]
fn f20_a_requirer_called_juju_info_is_an_ordinary_endpoint() {
    let mut world = World::started();
    world.relate(1, "juju-info", Some("b"));
    world.relation(1).endpoints[0].role = Role::Requirer;
    check(&mut world, &["juju-info-relation-created"]);
}

#[test]
fn f21_r27_relations_are_served_by_id_and_peers_last() {
    let mut world = World::started();
    world.relate(0, "ring", None);
    world.relate(1, "web", Some("c"));
    world.relate(2, "db", Some("b"));
    world.join(0, "a/1", 1);
    world.join(1, "c/0", 1);
    world.join(2, "b/0", 1);
    check(
        &mut world,
        &[
            "web-relation-created",
            "db-relation-created",
            "ring-relation-created",
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
    world.remove_by_force(1);
    check(&mut world, &["db-relation-departed b/0", "db-relation-departed b/1", "db-relation-broken"]);
    assert!(world.record().relations.is_empty());
}

#[test]
fn a_relation_removed_by_force_while_it_breaks_is_forgotten() {
    let mut world = related(&[]);
    world.relation(1).life = Life::Dying;
    let run = world.due();
    assert!(run.seen.relation_exists);
    world.remove_by_force(1);
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &[]);
    assert!(world.record().relations.is_empty());
}

#[test]
fn r26_peers_removed_by_force_depart_and_do_not_break() {
    let mut world = World::started();
    world.relate(0, "ring", None);
    world.join(0, "a/1", 1);
    world.settle();
    world.take_trace();
    // Force takes peers apart with their application alone.
    world.die();
    world.remove_by_force(0);
    world.step_until(|world| world.record().relations.is_empty());
    assert_eq!(world.take_trace(), ["ring-relation-departed a/1 (a/0 leaves)"]);
    check(&mut world, &["stop", "remove"]);
}

#[test]
fn r34_relations_of_other_applications_are_none_of_its_business() {
    let mut world = World::started();
    world.relate(1, "db", Some("b"));
    for end in &mut world.relation(1).endpoints {
        if end.application.as_str() == "a" {
            end.application = "c".parse().unwrap();
        }
    }
    world.join(1, "c/0", 1);
    check(&mut world, &[]);
    assert!(!world.is_member(1));
}

#[test]
fn u3_a_member_is_recorded_with_the_version_of_the_decision() {
    let mut world = related(&[]);
    world.join(1, "b/0", 2);
    let run = world.due();
    assert_eq!(run.seen.bag_version, 2);
    world.write(1, "b/0", 7);
    world.end(&run, HookEnd::Handled { status_set: false });
    let b0: UnitName = "b/0".parse().unwrap();
    assert_eq!(world.record().relations[&RelationId(1)].members[&b0], 2);
    check(&mut world, &["db-relation-changed b/0"]);
    assert_eq!(world.record().relations[&RelationId(1)].members[&b0], 7);
}

#[test]
fn r30_a_bag_of_an_earlier_version_differs_as_after_a_backup_was_restored() {
    let mut world = related(&["b/0"]);
    world.write(1, "b/0", 9);
    check(&mut world, &["db-relation-changed b/0"]);
    world.write(1, "b/0", 4);
    check(&mut world, &["db-relation-changed b/0"]);
    check(&mut world, &[]);
}
