//! Tests of delayed events (decision 0017).

use periapt_host_api::{
    EventId, RelationId, Timestamp,
    command::ResolveMode,
    pending::{Condition, PendingEvent, digest},
    relation::BagOwner,
    settings::OptionValue,
};
use periapt_uniter::Decision;

use crate::{World, check, world::TEXTUAL};

/// Returns a started unit without update-status and with some delayed events.
fn waiting(events: impl IntoIterator<Item = (u64, Option<u64>, Vec<Condition>)>) -> World {
    let mut world = World::started();
    world.update_status_every("0");
    world.settle();
    world.take_trace();
    let asked_at = world.now;
    for (id, after_ms, conditions) in events {
        ask(&mut world, id, asked_at, after_ms, conditions);
    }
    world
}

fn ask(world: &mut World, id: u64, asked_at: Timestamp, after_ms: Option<u64>, conditions: Vec<Condition>) {
    let event =
        PendingEvent { name: format!("event-{id}"), data: "null".into(), asked_at, after_ms, conditions };
    world.ask_later(EventId(id), event);
}

fn wakes_at(decision: &Decision) -> Option<Timestamp> {
    match decision {
        Decision::Idle { wake_at } => *wake_at,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_time_that_comes_wakes_the_unit_and_is_told_once() {
    let mut world = waiting([(0, Some(600_000), vec![]), (1, Some(60_000), vec![])]);
    let rest = check(&mut world, &[]);
    assert_eq!(wakes_at(&rest), Some("2026-01-01T00:01:00Z".parse().unwrap()));
    world.advance(59);
    check(&mut world, &[]);
    world.advance(1);
    let rest = check(&mut world, &["event-1"]);
    assert_eq!(wakes_at(&rest), Some("2026-01-01T00:10:00Z".parse().unwrap()));
    world.advance(10_000);
    let rest = check(&mut world, &["event-0"]);
    assert_eq!(wakes_at(&rest), None, "they are told, and nothing is left to wait for");
}

#[test]
fn times_that_passed_while_nobody_looked_are_told_once_in_the_order_of_their_asking() {
    let mut world = waiting([(0, Some(600_000), vec![]), (1, Some(60_000), vec![])]);
    world.advance(1_000_000);
    check(&mut world, &["event-0", "event-1"]);
}

#[test]
fn a_clock_that_was_set_back_loses_nothing() {
    let mut world = waiting([]);
    let later = "2027-01-01T00:00:00Z".parse().unwrap();
    ask(&mut world, 0, later, Some(600_000), vec![]);
    check(&mut world, &["event-0"]);
}

#[test]
fn it_waits_for_all_ordinary_hooks_and_precedes_update_status() {
    let mut world = waiting([(0, Some(1_000), vec![])]);
    world.update_status_every("60s");
    world.settle();
    world.advance(100);
    world.relate("db", "b");
    world.join("db", "b/0");
    world.configure("other");
    check(
        &mut world,
        &[
            "db-relation-created",
            "config-changed",
            "db-relation-joined b/0",
            "db-relation-changed b/0",
            "event-0",
        ],
    );
}

#[test]
fn an_option_that_changes_makes_it_due() {
    let mut world = waiting([]);
    let seen = digest::<OptionValue>(None);
    let now = world.now;
    ask(&mut world, 0, now, None, vec![Condition::Config { option: "port".into(), seen }]);
    let rest = check(&mut world, &[]);
    assert_eq!(wakes_at(&rest), None);
    world.set_option("port", "80");
    check(&mut world, &["config-changed", "event-0"]);
    let seen = digest(Some(&OptionValue::Integer(80)));
    ask(&mut world, 1, now, None, vec![Condition::Config { option: "port".into(), seen }]);
    check(&mut world, &[]);
    // A value that does not have the option's type counts as not set, as in hooks.
    world.want_charm(TEXTUAL, false);
    check(&mut world, &["deploy 4", "upgrade-charm", "config-changed", "event-1"]);
}

#[test]
fn a_key_of_a_bag_that_changes_or_a_relation_that_ends_makes_it_due() {
    let mut world = waiting([]);
    world.relate("db", "b");
    world.join("db", "b/0");
    world.settle();
    world.take_trace();
    let relation: RelationId = world.id("db");
    let condition = |seen: Option<&str>| Condition::Relation {
        relation,
        owner: BagOwner::Unit("b/0".parse().unwrap()),
        key: "host".into(),
        seen: digest(seen.map(str::to_owned).as_ref()),
    };
    let now = world.now;
    ask(&mut world, 0, now, None, vec![condition(None)]);
    world.write_key("db", "b/0", "port", "80");
    check(&mut world, &["db-relation-changed b/0"]);
    world.write_key("db", "b/0", "host", "h");
    check(&mut world, &["db-relation-changed b/0", "event-0"]);
    ask(&mut world, 1, now, None, vec![condition(Some("h"))]);
    world.leave("db", "b/0");
    check(&mut world, &["db-relation-departed b/0"]);
    world.remove_relation("db");
    check(&mut world, &["db-relation-broken", "event-1"]);
}

#[test]
fn another_leader_makes_it_due() {
    let mut world = waiting([]);
    let now = world.now;
    ask(&mut world, 0, now, None, vec![Condition::Leader { seen: Some("a/0".parse().unwrap()) }]);
    check(&mut world, &[]);
    world.lead_by_nobody();
    check(&mut world, &[]);
    world.lead_by("a/1");
    check(&mut world, &["leader-settings-changed", "event-0"]);
}

#[test]
fn the_first_of_time_and_conditions_counts_and_the_other_is_forgotten() {
    let mut world = waiting([]);
    let now = world.now;
    let condition = Condition::Leader { seen: Some("a/0".parse().unwrap()) };
    ask(&mut world, 0, now, Some(60_000), vec![condition]);
    world.advance(60);
    check(&mut world, &["event-0"]);
    world.lead_by("a/1");
    check(&mut world, &["leader-settings-changed"]);
}

#[test]
fn a_failed_one_is_tried_again_and_is_over_when_it_is_resolved_or_cancelled() {
    let mut world = waiting([(0, Some(1_000), vec![]), (1, Some(1_000), vec![]), (2, Some(1_000), vec![])]);
    world.failing.insert("event-0".to_owned());
    world.advance(1);
    check(&mut world, &["event-0 FAILED"]);
    world.advance(400);
    check(&mut world, &["event-0 FAILED"]);
    world.resolved(ResolveMode::NoRetry);
    world.failing.insert("event-2".to_owned());
    check(&mut world, &["event-0 skipped", "event-1", "event-2 FAILED"]);
    world.cancel_event(EventId(2));
    check(&mut world, &["event-2 skipped"]);
    assert!(matches!(world.decide(), Decision::Idle { .. }), "without waiting for the retry");
}

#[test]
fn a_unit_that_goes_or_has_not_started_is_told_nothing() {
    let mut world = waiting([(0, Some(1_000), vec![])]);
    world.advance(10);
    world.die();
    check(&mut world, &["stop", "remove"]);

    // The charm requested the event in its first hook.
    let mut world = World::new();
    world.step_until(|world| world.record().installed);
    let now = world.now;
    ask(&mut world, 0, now, Some(1_000), vec![]);
    world.advance(10);
    check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start", "event-0"]);
}
