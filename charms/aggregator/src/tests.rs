//! The charm against a unit in memory.

use super::Aggregator;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Relation, Status};

/// A leader that so many units have told of as many lines as their number.
fn aggregator(units: u32) -> (Harness<Aggregator>, Relation) {
    let mut unit = Harness::new("aggregator/0");
    unit.leader(true).run(Event::Install).unwrap();
    let logs = unit.relate("logs", "log-shipper");
    for number in 0..units {
        let (count, principal) = (number.to_string(), format!("blog/{number}"));
        let bag =
            [("count", count.as_str()), ("missed", "0"), ("principal", &principal), ("lines", "a\nb\nc")];
        unit.join(&logs, &format!("log-shipper/{number}"), &bag).unwrap();
    }
    (unit, logs)
}

#[test]
fn what_many_units_say_is_gathered_and_published() {
    let (unit, _) = aggregator(0);
    assert_eq!(unit.status(), Some(Status::waiting("for units to tell of their logs")));
    let (unit, logs) = aggregator(100);
    let bag = unit.app_bag(&logs);
    assert_eq!((bag["units"].as_str(), bag["lines"].as_str()), ("100", "4950"));
    assert_eq!(unit.status(), Some(Status::active("4950 lines of 100 units")));
}

#[test]
fn who_changes_is_counted_anew_and_who_departs_no_more() {
    let (mut unit, logs) = aggregator(3);
    let before = unit.app_bag(&logs)["digest"].clone();
    unit.change(&logs, "log-shipper/1", &[("count", "10"), ("missed", "4")]).unwrap();
    unit.depart(&logs, "log-shipper/2").unwrap();
    let bag = unit.app_bag(&logs);
    assert_eq!((bag["units"].as_str(), bag["lines"].as_str(), bag["missed"].as_str()), ("2", "10", "4"));
    assert_ne!(bag["digest"], before);
}

#[test]
fn units_that_have_heard_the_same_have_the_same_digest_however_they_heard_it() {
    let digest = |(unit, logs): (Harness<Aggregator>, Relation)| unit.app_bag(&logs)["digest"].clone();
    let (mut more, logs) = aggregator(4);
    more.depart(&logs, "log-shipper/3").unwrap();
    assert_eq!(digest(aggregator(3)), digest((more, logs)));
    assert_ne!(digest(aggregator(3)), digest(aggregator(2)));
}

#[test]
fn a_new_leader_publishes_what_it_has_heard_before() {
    let (mut unit, logs) = aggregator(1);
    unit.leader(false).join(&logs, "log-shipper/7", &[("count", "5")]).unwrap();
    assert_eq!(unit.app_bag(&logs)["units"], "1");
    unit.leader(true).run(Event::LeaderElected).unwrap();
    assert_eq!(unit.app_bag(&logs)["units"], "2");
}

#[test]
fn the_newest_lines_of_each_principal_can_be_shown() {
    let (mut unit, _) = aggregator(2);
    unit.action("tail", &[("lines", "2")]).unwrap();
    let results = unit.action_results();
    assert_eq!((results["blog-0"].as_str(), results.len()), ("b\nc", 2));
}

#[test]
fn of_a_relation_that_ended_nothing_is_left() {
    let (mut unit, logs) = aggregator(2);
    unit.end(&logs).unwrap();
    assert_eq!(unit.status(), Some(Status::waiting("for units to tell of their logs")));
}
