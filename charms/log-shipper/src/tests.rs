//! Tests of the charm against an in-memory unit, beside `blog/1`.

use super::LogShipper;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Relation, Status};

/// Returns a unit whose principal has published its log, and the relation with the principal.
fn shipper(lines: i64) -> (Harness<LogShipper>, Relation) {
    let mut unit = Harness::new("log-shipper/3");
    unit.config("lines", lines).principal("blog/1");
    let logs = unit.relate("logs", "blog");
    unit.run(Event::Install).unwrap();
    let bag = &[("ingress-address", "10.0.0.7"), ("log-last", "2"), ("log", "one\ntwo")];
    unit.join(&logs, "blog/1", bag).unwrap();
    (unit, logs)
}

#[test]
fn what_the_principal_logs_is_shipped_in_the_second_relation() {
    let (mut unit, logs) = shipper(2);
    assert_eq!(unit.status(), Some(Status::blocked("nowhere to ship to: integrate an aggregator")));
    let aggregator = unit.relate("aggregator", "aggregator");
    unit.join(&aggregator, "aggregator/0", &[]).unwrap();
    let bag = unit.unit_bag(&aggregator);
    assert_eq!((bag["principal"].as_str(), bag["address"].as_str()), ("blog/1", "10.0.0.7"));
    assert_eq!((bag["count"].as_str(), bag["lines"].as_str()), ("2", "one\ntwo"));
    assert_eq!(unit.status(), Some(Status::active("shipped 2 lines of blog/1")));

    unit.change(&logs, "blog/1", &[("log-last", "3"), ("log", "one\ntwo\nthree")]).unwrap();
    let bag = unit.unit_bag(&aggregator);
    assert_eq!((bag["count"].as_str(), bag["lines"].as_str()), ("3", "two\nthree"));
    // A repeated event counts nothing again.
    unit.run(Event::UpdateStatus).unwrap();
    assert_eq!(unit.unit_bag(&aggregator), bag);
}

#[test]
fn lines_that_were_gone_before_they_were_read_are_counted_as_missed() {
    let (mut unit, logs) = shipper(10);
    let aggregator = unit.relate("aggregator", "aggregator");
    unit.change(&logs, "blog/1", &[("log-last", "12"), ("log", "eleven\ntwelve")]).unwrap();
    let bag = unit.unit_bag(&aggregator);
    assert_eq!((bag["count"].as_str(), bag["missed"].as_str()), ("12", "8"));
    assert_eq!(bag["lines"], "one\ntwo\neleven\ntwelve");
    assert_eq!(unit.status(), Some(Status::active("shipped 12 lines of blog/1, missed 8")));
}

#[test]
fn beside_a_charm_that_knows_nothing_of_logs_it_says_where_it_is() {
    let mut unit = Harness::<LogShipper>::new("log-shipper/0");
    unit.config("lines", 10).principal("mysql/0");
    let host = unit.relate("host", "mysql");
    let aggregator = unit.relate("aggregator", "aggregator");
    unit.join(&host, "mysql/0", &[("ingress-address", "10.0.0.9")]).unwrap();
    let bag = unit.unit_bag(&aggregator);
    assert_eq!((bag["address"].as_str(), bag["count"].as_str()), ("10.0.0.9", "0"));
    assert!(!bag.contains_key("lines"));
}

#[test]
fn an_impossible_number_of_lines_blocks_and_says_why() {
    let (mut unit, _) = shipper(0);
    unit.run(Event::ConfigChanged).unwrap();
    assert_eq!(unit.status(), Some(Status::blocked("option lines is 0, expected 1 to 100")));
}
