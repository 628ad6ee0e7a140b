//! Tests of the charm against an in-memory unit.

use super::Aggregator;
use periapt_sdk::testing::{Batch, Harness};
use periapt_sdk::{Event, Relation, Status};

fn aggregator() -> (Harness<Aggregator>, Relation) {
    let mut unit = Harness::new("aggregator/0");
    unit.leader(true).run(Event::Install).unwrap();
    let logs = unit.relate("logs", "log-shipper");
    (unit, logs)
}

/// Returns a batch in which so many units join, each with as many lines as its number.
fn joined(units: u32) -> Batch {
    (0..units).fold(Batch::new(), |batch, number| {
        let (count, principal) = (number.to_string(), format!("blog/{number}"));
        let bag =
            [("count", count.as_str()), ("missed", "0"), ("principal", &principal), ("lines", "a\nb\nc")];
        batch.join(&format!("log-shipper/{number}"), &bag)
    })
}

#[test]
fn many_units_are_gathered_in_one_hook() {
    let (mut unit, logs) = aggregator();
    assert_eq!(unit.status(), Some(Status::waiting("for units to tell of their logs")));
    unit.batch(&logs, joined(100)).unwrap();
    let bag = unit.app_bag(&logs);
    assert_eq!((bag["units"].as_str(), bag["lines"].as_str()), ("100", "4950"));
    let told = "4950 lines of 100 units, told in 1 hook, at most 100 at a time";
    assert_eq!(unit.status(), Some(Status::active(told)));
}

#[test]
fn who_changes_is_counted_anew_and_who_departs_no_more() {
    let (mut unit, logs) = aggregator();
    unit.batch(&logs, joined(3)).unwrap();
    let before = unit.app_bag(&logs)["digest"].clone();
    let changed = Batch::new().change("log-shipper/1", &[("count", "10"), ("missed", "4")]);
    unit.batch(&logs, changed.depart("log-shipper/2")).unwrap();
    let bag = unit.app_bag(&logs);
    assert_eq!((bag["units"].as_str(), bag["lines"].as_str(), bag["missed"].as_str()), ("2", "10", "4"));
    assert_ne!(bag["digest"], before);
    let told = "10 lines of 2 units, told in 2 hooks, at most 3 at a time";
    assert_eq!(unit.status(), Some(Status::active(told)));
}

#[test]
fn units_that_have_heard_the_same_have_the_same_digest_however_they_heard_it() {
    let digest = |batches: Vec<Batch>| {
        let (mut unit, logs) = aggregator();
        for batch in batches {
            unit.batch(&logs, batch).unwrap();
        }
        unit.app_bag(&logs)["digest"].clone()
    };
    let piecemeal = vec![joined(4), Batch::new().depart("log-shipper/3")];
    assert_eq!(digest(vec![joined(3)]), digest(piecemeal));
    assert_ne!(digest(vec![joined(3)]), digest(vec![joined(2)]));
}

#[test]
fn a_new_leader_publishes_what_it_has_heard_before() {
    let (mut unit, logs) = aggregator();
    unit.leader(false).batch(&logs, joined(2)).unwrap();
    assert!(unit.app_bag(&logs).is_empty());
    unit.leader(true).run(Event::LeaderElected).unwrap();
    assert_eq!(unit.app_bag(&logs)["units"], "2");
}

#[test]
fn the_newest_lines_of_each_principal_can_be_shown() {
    let (mut unit, logs) = aggregator();
    unit.batch(&logs, joined(2)).unwrap();
    unit.action("tail", &[("lines", "2")]).unwrap();
    let results = unit.action_results();
    assert_eq!((results["blog-0"].as_str(), results.len()), ("b\nc", 2));
}

#[test]
fn of_a_relation_that_ended_nothing_is_left() {
    let (mut unit, logs) = aggregator();
    unit.batch(&logs, joined(2)).unwrap();
    unit.end(&logs).unwrap();
    assert_eq!(unit.status(), Some(Status::waiting("for units to tell of their logs")));
}
