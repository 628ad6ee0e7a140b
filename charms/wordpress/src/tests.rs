//! Tests of the charm against an in-memory unit.

use super::Wordpress;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Ports, Relation, Status};

const ACCOUNT: &[(&str, &str)] = &[
    ("host", "10.0.0.2"),
    ("port", "3306"),
    ("database", "wordpress_1"),
    ("user", "relation-1"),
    ("password", "secret"),
];

/// Returns a leader with a database, its peer relation, and the database's relation.
fn serving() -> (Harness<Wordpress>, Relation, Relation) {
    let (mut unit, peers) = installed();
    let db = unit.relate("db", "mysql");
    unit.leader(true).join(&db, "mysql/0", &[]).unwrap();
    unit.change_app(&db, ACCOUNT).unwrap();
    (unit, peers, db)
}

fn installed() -> (Harness<Wordpress>, Relation) {
    let mut unit = Harness::new("wordpress/0");
    unit.config("blog-title", "Cats").config("port", 80).config("debug", false);
    let peers = unit.relate("loadbalancer", "wordpress");
    unit.run(Event::Install).unwrap();
    unit.run(Event::ConfigChanged).unwrap();
    unit.run(Event::Start).unwrap();
    (unit, peers)
}

fn ports(unit: &Harness<Wordpress>) -> Vec<Ports> {
    unit.opened_ports().into_iter().map(|open| open.ports).collect()
}

#[test]
fn it_is_blocked_without_a_database_and_waits_for_its_account() {
    let (mut unit, _) = installed();
    assert_eq!(unit.status(), Some(Status::blocked("needs a database: integrate with mysql")));
    let db = unit.relate("db", "mysql");
    unit.join(&db, "mysql/0", &[]).unwrap();
    assert_eq!(unit.status(), Some(Status::waiting("for the database")));
    unit.change_app(&db, &ACCOUNT[..4]).unwrap();
    assert_eq!(unit.status(), Some(Status::waiting("for the database")));
    assert!(ports(&unit).is_empty());
}

#[test]
fn it_serves_once_everything_is_there() {
    let (unit, peers, _) = serving();
    assert_eq!(unit.status(), Some(Status::active("serving \"Cats\" on port 80, 1 unit")));
    assert_eq!(ports(&unit), [Ports::tcp(80)]);
    assert_eq!(unit.unit_bag(&peers)["config-digest"].len(), 64);
}

#[test]
fn units_share_the_leaders_salt_and_so_serve_the_same() {
    let (leader, leaders_peers, _) = serving();
    let (mut other, peers) = installed();
    let db = other.relate("db", "mysql");
    other.change_app(&db, ACCOUNT).unwrap();
    assert_eq!(other.status(), Some(Status::waiting("for the leader's salt")));
    let salt = leader.app_bag(&leaders_peers)["auth-salt"].clone();
    other.change_app(&peers, &[("auth-salt", &salt)]).unwrap();
    assert_eq!(other.unit_bag(&peers)["config-digest"], leader.unit_bag(&leaders_peers)["config-digest"]);
}

#[test]
fn a_new_port_closes_the_old_one_and_is_told_to_the_website() {
    let (mut unit, _, _) = serving();
    let website = unit.relate("website", "haproxy");
    unit.join(&website, "haproxy/0", &[]).unwrap();
    assert_eq!(unit.unit_bag(&website)["port"], "80");
    unit.config("port", 8080).run(Event::ConfigChanged).unwrap();
    assert_eq!(ports(&unit), [Ports::tcp(8080)]);
    assert_eq!(unit.unit_bag(&website)["port"], "8080");
    assert_eq!(unit.unit_bag(&website)["hostname"], "10.0.0.1");
}

#[test]
fn settings_that_change_the_file_change_its_digest_and_others_do_not() {
    let (mut unit, peers, _) = serving();
    let before = unit.unit_bag(&peers)["config-digest"].clone();
    unit.run(Event::ConfigChanged).unwrap();
    assert_eq!(unit.unit_bag(&peers)["config-digest"], before);
    unit.config("blog-title", "Dogs").run(Event::ConfigChanged).unwrap();
    assert_ne!(unit.unit_bag(&peers)["config-digest"], before);
}

#[test]
fn peers_are_counted_as_they_come_and_go() {
    let (mut unit, peers, _) = serving();
    unit.join(&peers, "wordpress/1", &[]).unwrap();
    unit.join(&peers, "wordpress/2", &[]).unwrap();
    assert_eq!(unit.status(), Some(Status::active("serving \"Cats\" on port 80, 3 units")));
    unit.depart(&peers, "wordpress/2").unwrap();
    assert_eq!(unit.status(), Some(Status::active("serving \"Cats\" on port 80, 2 units")));
}

#[test]
fn without_its_database_it_closes_the_port_and_takes_itself_off_the_website() {
    let (mut unit, _, db) = serving();
    let website = unit.relate("website", "haproxy");
    unit.join(&website, "haproxy/0", &[]).unwrap();
    unit.end(&db).unwrap();
    assert_eq!(unit.status(), Some(Status::blocked("needs a database: integrate with mysql")));
    assert!(ports(&unit).is_empty());
    assert!(!unit.unit_bag(&website).contains_key("port"));
}

#[test]
fn an_impossible_port_blocks_and_says_why() {
    let (mut unit, _, _) = serving();
    unit.config("port", 70_000).run(Event::ConfigChanged).unwrap();
    let expected = "option port is 70000, expected a whole number from 0 to 65535";
    assert_eq!(unit.status(), Some(Status::blocked(expected)));
}

#[test]
fn posts_are_published_by_the_leader_alone_and_kept_for_backups() {
    let (mut unit, peers, _) = serving();
    let content = unit.relate("content", "backup");
    unit.join(&content, "backup/0", &[]).unwrap();
    assert_eq!(unit.app_bag(&content)["entries"], "0");
    unit.action("publish", &[("title", "\"Cats\""), ("text", "\"They sleep.\"")]).unwrap();
    unit.action("publish", &[("title", "\"Dogs\"")]).unwrap();
    assert_eq!(unit.action_results()["post"], "2");
    assert_eq!(unit.app_bag(&peers)["post-1"], "Cats\nThey sleep.");
    let kept = unit.app_bag(&content);
    assert_eq!((kept["entries"].as_str(), kept["content.post-2"].as_str()), ("2", "Dogs\n"));
    unit.action("retract", &[("id", "1")]).unwrap();
    assert!(!unit.app_bag(&content).contains_key("content.post-1"));
    unit.action("posts", &[]).unwrap();
    assert_eq!(unit.action_results()["posts.post-2"], "Dogs");
    let failure = unit.leader(false).action("publish", &[("title", "\"x\"")]).unwrap_err();
    assert_eq!(failure.message, "only the leader does this: run it on wordpress/leader");
}

#[test]
fn what_a_backup_gives_back_takes_the_place_of_the_posts_once() {
    let (mut unit, peers, _) = serving();
    let content = unit.relate("content", "backup");
    unit.action("publish", &[("title", "\"New\"")]).unwrap();
    let given = &[("restore", "7"), ("content.post-4", "Old\n"), ("content.auth-salt", "mine")];
    unit.join(&content, "backup/0", given).unwrap();
    let posts = unit.app_bag(&peers);
    assert!(!posts.contains_key("post-1") && posts["auth-salt"] != "mine");
    assert_eq!(posts["post-4"], "Old\n");
    assert_eq!(unit.app_bag(&content)["restored.backup-0"], "7");
    assert_eq!(unit.app_bag(&content)["content.post-4"], "Old\n");

    // The request is not applied twice, and is forgotten with the backup unit's bag.
    unit.action("publish", &[("title", "\"Newer\"")]).unwrap();
    unit.change(&content, "backup/0", &[]).unwrap();
    assert!(unit.app_bag(&peers).contains_key("post-5"));
    unit.change(&content, "backup/0", &[("restore", ""), ("content.post-4", "")]).unwrap();
    assert!(!unit.app_bag(&content).contains_key("restored.backup-0"));
}

#[test]
fn what_a_unit_did_can_be_followed_in_its_bag() {
    let (mut unit, _, _) = serving();
    let logs = unit.relate("logs", "log-shipper");
    unit.join(&logs, "log-shipper/0", &[]).unwrap();
    let bag = unit.unit_bag(&logs);
    assert_eq!(bag["log-last"], "1");
    assert!(bag["log"].starts_with("rendered wp-config.php, sha256 "), "{}", bag["log"]);
    for post in 0..30 {
        unit.action("publish", &[("title", &format!("\"Post {post}\""))]).unwrap();
    }
    let bag = unit.unit_bag(&logs);
    assert_eq!((bag["log-last"].as_str(), bag["log"].lines().count()), ("31", 20));
    assert!(bag["log"].ends_with("published post 30, \"Post 29\""), "{}", bag["log"]);
}

#[test]
fn where_there_is_an_authority_it_waits_for_a_certificate_and_takes_each_new_one() {
    let (mut unit, _, _) = serving();
    let authority = unit.relate("certificates", "authority");
    unit.join(&authority, "authority/0", &[]).unwrap();
    assert_eq!(unit.unit_bag(&authority)["common_name"], "wordpress-0");
    assert_eq!(unit.status(), Some(Status::waiting("for a certificate")));
    assert!(ports(&unit).is_empty());

    let key = unit.grant_secret(&[("private-key", "one")]);
    let given = [("cert", "a"), ("key-secret", key.uri()), ("serial", "4f")];
    let given = given.map(|(part, value)| (format!("wordpress_0.server.{part}"), value));
    let given: Vec<_> = given.iter().map(|(key, value)| (key.as_str(), *value)).collect();
    unit.change_app(&authority, &given).unwrap();
    let serving = "serving \"Cats\" on port 80, 1 unit, certificate";
    assert_eq!(unit.status(), Some(Status::active(format!("{serving} 4f"))));
    assert_eq!(ports(&unit), [Ports::tcp(80), Ports::tcp(443)]);

    unit.revise_secret(&key, &[("private-key", "another")]);
    unit.change_app(&authority, &[("wordpress_0.server.serial", "50")]).unwrap();
    assert_eq!(unit.status(), Some(Status::active(format!("{serving} 50"))));
    let told = unit.log().last().unwrap().1.clone();
    assert_eq!(told, "took certificate 50 and its key, 8 bytes");

    unit.change_app(&authority, &[("wordpress_0.server.error", "no name")]).unwrap();
    assert_eq!(unit.status(), Some(Status::blocked("no certificate: no name")));
    unit.end(&authority).unwrap();
    assert_eq!(ports(&unit), [Ports::tcp(80)]);
}
