//! Tests of batches: all changes of a relation's members in one hook (decision 0016).

use periapt_host_api::{
    UnitName,
    command::ResolveMode,
    event::{Event, MAX_BATCH_MEMBERS, RelationBatch},
    record::{HookStep, Operation},
    relation::BagOwner,
};
use periapt_uniter::{Decision, HookEnd};

use crate::{World, check, world::BATCHING};

/// Returns a started unit of the charm that wants batches, with a relation to `b` and these known members.
fn related(members: &[&str]) -> World {
    let mut world = World::started();
    world.update_status_every("0");
    world.want_charm(BATCHING, false);
    world.relate("db", "b");
    for unit in members {
        world.join("db", unit);
    }
    world.settle();
    world.take_trace();
    world
}

fn known(world: &World) -> Vec<(String, u64)> {
    let told = &world.record().relations[&world.id("db")];
    told.members.iter().map(|(unit, version)| (unit.to_string(), *version)).collect()
}

#[test]
fn what_happened_since_the_last_hook_is_one_hook() {
    let mut world = related(&[]);
    for unit in ["b/0", "b/1", "b/2"] {
        world.join("db", unit);
    }
    check(&mut world, &["db-relation-batch +b/0 +b/1 +b/2"]);
    world.write("db", "b/1");
    world.write("db", "b");
    world.leave("db", "b/2");
    world.join("db", "b/3");
    check(&mut world, &["db-relation-batch b +b/3 ~b/1 -b/2"]);
    assert_eq!(known(&world), [("b/0".into(), 1), ("b/1".into(), 2), ("b/3".into(), 1)]);
    check(&mut world, &[]);
}

#[test]
fn created_comes_first_and_broken_last_each_as_a_hook_of_its_own() {
    let mut world = World::started();
    world.want_charm(BATCHING, false);
    world.relate("db", "b");
    world.join("db", "b/0");
    world.join("db", "b/1");
    check(
        &mut world,
        &[
            "db-relation-created",
            "deploy 3",
            "upgrade-charm",
            "config-changed",
            "db-relation-batch +b/0 +b/1",
        ],
    );
    world.remove_relation("db");
    check(&mut world, &["db-relation-batch -b/0 -b/1", "db-relation-broken"]);
}

#[test]
fn r32_a_unit_that_leaves_is_the_one_that_departs() {
    let mut world = related(&["b/0", "b/1"]);
    world.die();
    check(&mut world, &["db-relation-batch -b/0 -b/1 (a/0 leaves)", "db-relation-broken", "stop", "remove"]);
}

#[test]
fn a_batch_is_bounded_and_the_rest_follows() {
    let mut world = related(&[]);
    let count = MAX_BATCH_MEMBERS + 10;
    for number in 0..count {
        world.join("db", &format!("b/{number}"));
    }
    world.settle();
    assert_eq!(world.take_trace().len(), 2);
    assert_eq!(known(&world).len(), count);
    world.remove_relation("db");
    world.settle();
    let hooks = world.take_trace();
    assert_eq!(hooks.len(), 3, "two batches and broken");
    assert_eq!(hooks[2], "db-relation-broken");
}

#[test]
fn u30_a_failed_batch_is_tried_again_with_what_there_is_by_then() {
    let mut world = related(&[]);
    world.failing.insert("db-relation-batch".to_owned());
    world.join("db", "b/0");
    world.join("db", "b/1");
    check(&mut world, &["db-relation-batch +b/0 +b/1 FAILED"]);
    world.leave("db", "b/1");
    world.join("db", "b/2");
    world.failing.clear();
    world.advance(400);
    let run = world.due();
    assert_eq!(run.attempt, 2, "another attempt, though it holds something else");
    assert_eq!(run.coalesced, ["2 units joined: b/0, b/2", "1 unit came and went: b/1"]);
    check(&mut world, &["db-relation-batch +b/0 +b/2"]);
}

#[test]
fn a_failed_batch_of_which_nothing_is_left_is_passed_over() {
    let mut world = related(&[]);
    world.failing.insert("db-relation-batch".to_owned());
    world.join("db", "b/0");
    check(&mut world, &["db-relation-batch +b/0 FAILED"]);
    world.leave("db", "b/0");
    world.advance(400);
    check(&mut world, &["db-relation-batch +b/0 skipped"]);
    assert_eq!(known(&world), []);
}

#[test]
fn u28_a_batch_that_is_resolved_without_a_retry_was_told() {
    let mut world = related(&["b/0"]);
    world.failing.insert("db-relation-batch".to_owned());
    world.write("db", "b/0");
    world.join("db", "b/1");
    check(&mut world, &["db-relation-batch +b/1 ~b/0 FAILED"]);
    world.failing.clear();
    world.leave("db", "b/1");
    world.write("db", "b/0");
    world.resolved(ResolveMode::NoRetry);
    // The skipped batch has its present content, and another batch has the rest.
    check(&mut world, &["db-relation-batch +b/1 ~b/0 skipped", "db-relation-batch -b/1"]);
    assert_eq!(known(&world), [("b/0".into(), 3)]);
}

#[test]
fn what_lands_while_a_batch_runs_is_in_the_next() {
    let mut world = related(&[]);
    world.join("db", "b/0");
    let run = world.due();
    world.write("db", "b/0");
    world.join("db", "b/1");
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["db-relation-batch +b/1 ~b/0"]);
}

#[test]
fn a_charm_that_comes_to_ask_for_batches_is_told_what_is_owed_in_one() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.join("db", "b/1");
    world.step_until(|world| world.committed.last().is_some_and(|event| event.kind() == "relation-joined"));
    world.take_trace();
    world.want_charm(BATCHING, false);
    // The unit was told that b/0 joined, but not its first change.
    check(&mut world, &["deploy 3", "upgrade-charm", "config-changed", "db-relation-batch +b/1 ~b/0"]);
    assert_eq!(world.record().relations[&world.id("db")].changed_pending, None);
    world.want_charm(1, false);
    world.write("db", "b/0");
    world.join("db", "b/2");
    check(
        &mut world,
        &[
            "deploy 1",
            "upgrade-charm",
            "config-changed",
            "db-relation-joined b/2",
            "db-relation-changed b/2",
            "db-relation-changed b/0",
        ],
    );
}

#[test]
fn a_failed_hook_is_told_in_the_form_that_the_charm_of_a_forced_refresh_asks_for() {
    let mut world = World::started();
    world.relate("db", "b");
    world.failing.insert("db-relation-joined".to_owned());
    world.join("db", "b/0");
    check(&mut world, &["db-relation-created", "db-relation-joined b/0 FAILED"]);
    world.want_charm(BATCHING, true);
    world.settle();
    world.advance(400);
    check(
        &mut world,
        &["deploy 3", "db-relation-joined b/0 skipped", "config-changed", "db-relation-batch +b/0"],
    );

    world.failing.insert("db-relation-batch".to_owned());
    world.join("db", "b/1");
    world.leave("db", "b/0");
    check(&mut world, &["db-relation-batch +b/1 -b/0 FAILED"]);
    world.want_charm(1, true);
    world.settle();
    world.failing.clear();
    world.advance(400);
    check(
        &mut world,
        &[
            "deploy 1",
            "db-relation-batch +b/1 -b/0 skipped",
            "config-changed",
            "db-relation-departed b/0",
            "db-relation-joined b/1",
            "db-relation-changed b/1",
        ],
    );
}

#[test]
fn a_batch_that_failed_stands_in_the_record_with_its_members() {
    let mut world = related(&[]);
    world.failing.insert("db-relation-batch".to_owned());
    world.join("db", "b/0");
    world.settle();
    let Operation::Hook { event: Event::RelationBatch { batch, .. }, step: HookStep::Failed(_) } =
        &world.record().operation
    else {
        panic!("{:?}", world.record().operation)
    };
    let joined: [UnitName; 1] = ["b/0".parse().unwrap()];
    assert_eq!(*batch, RelationBatch { joined: joined.into(), ..RelationBatch::default() });
    assert!(matches!(world.decide(), Decision::Wait { .. }));
}

#[test]
fn what_a_batch_merges_is_told() {
    let mut world = related(&["b/0", "b/1"]);
    for owner in ["b/0", "b/0", "b/0", "b/1", "b", "b", "b"] {
        world.write("db", owner);
    }
    let run = world.due();
    assert_eq!(
        run.coalesced,
        ["2 units changed: b/0, b/1", "3 changes of members' settings", "3 changes of b's settings"]
    );
    assert_eq!(run.seen.member_versions.len(), 2);
    assert!(world.view.bags.keys().any(|key| matches!(key.owner, BagOwner::Application(_))));
}

#[test]
fn u16_a_failed_batch_of_a_relation_that_was_removed_by_force_tells_only_who_departed() {
    let mut world = related(&["b/0"]);
    world.failing.insert("db-relation-batch".to_owned());
    world.join("db", "b/1");
    check(&mut world, &["db-relation-batch +b/1 FAILED"]);
    world.failing.clear();
    world.remove_by_force("db");
    check(&mut world, &["db-relation-batch +b/1 skipped", "db-relation-batch -b/0", "db-relation-broken"]);
    assert!(world.record().relations.is_empty());
}
