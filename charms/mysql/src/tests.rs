//! Tests of the charm against an in-memory unit.

use super::Mysql;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, GoalState, GoalStatus, Ports, Relation, Status};

fn mysql(leader: bool) -> (Harness<Mysql>, Relation) {
    let mut unit = Harness::new("mysql/0");
    unit.config("max-connections", 151).config("character-set", "utf8mb4").leader(leader);
    let peers = unit.relate("replicas", "mysql");
    unit.run(Event::Install).unwrap();
    unit.run(Event::ConfigChanged).unwrap();
    unit.run(Event::Start).unwrap();
    (unit, peers)
}

#[test]
fn each_relation_gets_an_account_of_its_own() {
    let (mut unit, _) = mysql(true);
    let (blog, shop) = (unit.relate("db", "my-blog"), unit.relate("db", "shop"));
    unit.join(&blog, "my-blog/0", &[]).unwrap();
    unit.join(&shop, "shop/0", &[]).unwrap();
    let (first, second) = (unit.app_bag(&blog), unit.app_bag(&shop));
    assert_eq!(first["database"], "my_blog_1");
    assert_eq!(first["user"], "relation-1");
    assert_eq!((first["host"].as_str(), first["port"].as_str()), ("10.0.0.1", "3306"));
    assert_eq!(second["database"], "shop_2");
    assert_ne!(first["password"], second["password"]);
    assert_eq!(unit.status(), Some(Status::active("primary, accounts: 2")));
}

#[test]
fn a_password_outlives_hooks_and_leaders() {
    let (mut unit, peers) = mysql(true);
    let db = unit.relate("db", "blog");
    unit.join(&db, "blog/0", &[]).unwrap();
    let made = unit.app_bag(&db)["password"].clone();
    unit.run(Event::ConfigChanged).unwrap();
    assert_eq!(unit.app_bag(&db)["password"], made);

    // A later leader finds the account in the peers' bag.
    let (mut heir, heirs_peers) = mysql(false);
    let recorded = unit.app_bag(&peers);
    let handed: Vec<_> = recorded.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    let heirs_db = heir.relate("db", "blog");
    heir.change_app(&heirs_peers, &handed).unwrap();
    heir.leader(true).run(Event::LeaderElected).unwrap();
    assert_eq!(heir.app_bag(&heirs_db)["password"], made);
}

#[test]
fn a_non_leader_writes_no_application_bag() {
    let (mut unit, peers) = mysql(false);
    let db = unit.relate("db", "blog");
    unit.join(&db, "blog/0", &[]).unwrap();
    assert!(unit.app_bag(&db).is_empty() && unit.app_bag(&peers).is_empty());
    assert_eq!(unit.unit_bag(&peers)["role"], "replica");
    assert_eq!(unit.status(), Some(Status::waiting("for a primary")));
    unit.change_app(&peers, &[("primary", "mysql/1")]).unwrap();
    assert_eq!(unit.status(), Some(Status::active("replica of mysql/1")));
}

#[test]
fn settings_are_republished_when_they_change() {
    let (mut unit, _) = mysql(true);
    let db = unit.relate("db", "blog");
    unit.join(&db, "blog/0", &[]).unwrap();
    unit.config("max-connections", 20).run(Event::ConfigChanged).unwrap();
    assert_eq!(unit.app_bag(&db)["max-connections"], "20");
}

#[test]
fn impossible_settings_block_and_say_what_is_wrong() {
    let (mut unit, _) = mysql(true);
    unit.config("max-connections", 0).run(Event::ConfigChanged).unwrap();
    let expected = "option max-connections is 0, expected 1 to 100000";
    assert_eq!(unit.status(), Some(Status::blocked(expected)));
    unit.config("max-connections", -1).run(Event::ConfigChanged).unwrap();
    let expected = "option max-connections is -1, expected a whole number from 0 to 4294967295";
    assert_eq!(unit.status(), Some(Status::blocked(expected)));
}

#[test]
fn an_ended_relation_takes_its_account_along() {
    let (mut unit, peers) = mysql(true);
    let db = unit.relate("db", "blog");
    unit.join(&db, "blog/0", &[]).unwrap();
    assert!(unit.app_bag(&peers).contains_key("password-1"));
    unit.end(&db).unwrap();
    assert!(!unit.app_bag(&peers).contains_key("password-1"));
    assert_eq!(unit.status(), Some(Status::active("primary, accounts: 0")));
}

#[test]
fn a_leader_that_goes_leaves_the_accounts_to_the_next() {
    let (mut unit, peers) = mysql(true);
    let db = unit.relate("db", "blog");
    unit.join(&db, "blog/0", &[]).unwrap();
    let made = unit.app_bag(&db)["password"].clone();
    let goal =
        |status: &str| GoalStatus { status: status.to_owned(), since: "2026-01-01 00:00:00Z".to_owned() };
    let units = vec![("mysql/0".to_owned(), goal("dying")), ("mysql/1".to_owned(), goal("active"))];
    unit.goal_state(GoalState { units, relations: Vec::new() });
    unit.end(&db).unwrap();
    assert_eq!(unit.app_bag(&peers)["password-1"], made);
}

#[test]
fn the_address_that_the_relation_gives_comes_first() {
    let (mut unit, _) = mysql(true);
    let db = unit.relate("db", "blog");
    unit.relation_address(&db, Some("192.0.2.7")).join(&db, "blog/0", &[]).unwrap();
    assert_eq!(unit.app_bag(&db)["host"], "192.0.2.7");
    unit.address(None).relation_address(&db, None).change(&db, "blog/0", &[]).unwrap();
    assert_eq!(unit.app_bag(&db)["host"], "mysql/0");
}

#[test]
fn the_port_is_open_from_start_to_stop() {
    let (mut unit, _) = mysql(false);
    assert_eq!(unit.opened_ports()[0].ports, Ports::tcp(3306));
    unit.run(Event::Stop).unwrap();
    assert!(unit.opened_ports().is_empty());
}
