//! Tests of the charm against an in-memory unit.

use super::TlsCertificates;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Relation, Secret, SecretEvent, SecretRevisionEvent, Status, Workload};

/// Returns a leader with a request of `blog/0`.
fn serving() -> (Harness<TlsCertificates>, Relation) {
    let mut unit = authority("90d");
    let blog = unit.relate("certificates", "blog");
    unit.join(&blog, "blog/0", &[("common_name", "blog-0"), ("sans", "[\"10.0.0.1\"]")]).unwrap();
    (unit, blog)
}

fn authority(lifetime: &str) -> Harness<TlsCertificates> {
    let mut unit = Harness::new("tls-certificates/0");
    unit.config("lifetime", lifetime).config("ca-rotation", "yearly").leader(true);
    unit.run(Event::ConfigChanged).unwrap();
    unit
}

fn part(unit: &Harness<TlsCertificates>, relation: &Relation, key: &str) -> Option<String> {
    unit.app_bag(relation).get(&format!("blog_0.server.{key}")).cloned()
}

fn key(unit: &Harness<TlsCertificates>, relation: &Relation) -> Secret {
    Secret::new(part(unit, relation, "key-secret").unwrap())
}

fn message(unit: &Harness<TlsCertificates>) -> String {
    unit.status().unwrap().message
}

#[test]
fn who_asks_gets_a_certificate_and_a_key_that_it_alone_reads() {
    let (unit, blog) = serving();
    let certificate = part(&unit, &blog, "cert").unwrap();
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----\n"), "{certificate}");
    assert_ne!(unit.app_bag(&blog)["ca"], certificate);
    assert_eq!(part(&unit, &blog, "names").as_deref(), Some("blog-0,10.0.0.1"));
    let secret = key(&unit, &blog);
    let (revision, content) = unit.secret(&secret).unwrap();
    assert!(content.text("private-key").unwrap().starts_with("-----BEGIN PRIVATE KEY-----\n"));
    assert_eq!((revision, unit.secret_readers(&secret)), (1, vec!["blog/0".to_owned()]));
    let bag = unit.app_bag(&blog);
    assert!(!bag.values().any(|value| value.contains("PRIVATE")), "{bag:?}");
    assert!(message(&unit).ends_with(", 1 certificate"), "{}", message(&unit));
}

#[test]
fn a_certificate_stays_until_other_names_are_asked_for() {
    let (mut unit, blog) = serving();
    let before = unit.app_bag(&blog);
    unit.run(Event::UpdateStatus).unwrap();
    unit.change(&blog, "blog/0", &[("other", "1")]).unwrap();
    assert_eq!(unit.app_bag(&blog), before);
    unit.change(&blog, "blog/0", &[("common_name", "blog.example")]).unwrap();
    assert_eq!(part(&unit, &blog, "names").as_deref(), Some("blog.example,10.0.0.1"));
    assert_eq!(unit.secret(&key(&unit, &blog)).unwrap().0, 2);
    assert_eq!(part(&unit, &blog, "key-secret"), before.get("blog_0.server.key-secret").cloned());
}

#[test]
fn a_key_that_expires_is_replaced_and_its_old_revision_removed_when_nobody_reads_it() {
    let (mut unit, blog) = serving();
    let secret = key(&unit, &blog);
    let serial = part(&unit, &blog, "serial");
    let event = SecretRevisionEvent { uri: secret.uri().to_owned(), label: None, revision: 1 };
    unit.run(Event::SecretExpired(event.clone())).unwrap();
    assert_eq!(unit.secret(&secret).unwrap().0, 2);
    assert_ne!(part(&unit, &blog, "serial"), serial);
    unit.run(Event::SecretRemove(event)).unwrap();
    assert!(message(&unit).ends_with(", 1 certificate, 1 old key removed"), "{}", message(&unit));
}

#[test]
fn a_new_authority_signs_everything_anew() {
    let (mut unit, blog) = serving();
    let before = unit.app_bag(&blog);
    let event = SecretEvent { uri: "secret:00000000000000000001".to_owned(), label: None };
    unit.run(Event::SecretRotate(event)).unwrap();
    let after = unit.app_bag(&blog);
    assert_ne!(after["ca"], before["ca"]);
    assert_ne!(after["blog_0.server.cert"], before["blog_0.server.cert"]);
    // The next hook keeps the certificate.
    unit.run(Event::UpdateStatus).unwrap();
    assert_eq!(unit.app_bag(&blog), after);
}

#[test]
fn one_certificate_or_all_are_renewed_when_an_operator_says_so() {
    let (mut unit, blog) = serving();
    unit.join(&blog, "blog/1", &[("common_name", "blog-1")]).unwrap();
    unit.action("renew", &[("unit", "\"blog/1\"")]).unwrap();
    assert_eq!(unit.action_results().into_keys().collect::<Vec<_>>(), ["blog-1"]);
    unit.action("renew", &[]).unwrap();
    assert_eq!(unit.action_results().len(), 2);
    assert_eq!(unit.action_results()["blog-0"], part(&unit, &blog, "serial").unwrap());
    unit.action("renew", &[("unit", "\"blog/7\"")]).unwrap();
    assert_eq!(unit.action_failure(), Some("there is no such certificate"));
    unit.action("show-authority", &[]).unwrap();
    assert_eq!(unit.action_results()["certificate"], unit.app_bag(&blog)["ca"]);
    let failure = unit.leader(false).action("renew", &[]).unwrap_err();
    assert_eq!(failure.message, "only the leader does this: run it on tls-certificates/leader");
}

#[test]
fn what_no_certificate_is_made_for_is_told_to_who_asked() {
    let (mut unit, blog) = serving();
    for (name, sans) in [("blog,O=Bank", "[]"), ("blog", "[1]"), ("blog", "blog")] {
        unit.change(&blog, "blog/0", &[("common_name", name), ("sans", sans)]).unwrap();
        assert!(part(&unit, &blog, "error").is_some(), "{name} {sans}");
        assert_eq!(part(&unit, &blog, "cert"), None);
        assert!(message(&unit).ends_with(", 0 certificates"), "{}", message(&unit));
    }
    unit.change(&blog, "blog/0", &[("common_name", "blog"), ("sans", "")]).unwrap();
    assert_eq!((part(&unit, &blog, "error"), part(&unit, &blog, "cert").is_some()), (None, true));
}

#[test]
fn the_key_of_a_unit_that_departs_is_removed() {
    let (mut unit, blog) = serving();
    let secret = key(&unit, &blog);
    unit.depart(&blog, "blog/0").unwrap();
    assert_eq!(unit.secret(&secret), None);
    assert_eq!(unit.app_bag(&blog).into_keys().collect::<Vec<_>>(), ["ca"]);
}

#[test]
fn a_unit_that_does_not_lead_does_nothing() {
    let mut unit = authority("90d");
    let blog = unit.relate("certificates", "blog");
    unit.leader(false).join(&blog, "blog/0", &[("common_name", "blog-0")]).unwrap();
    assert!(unit.app_bag(&blog).is_empty());
    assert_eq!(unit.status(), Some(Status::active("another unit is the authority")));
}

#[test]
fn settings_that_make_no_sense_block_and_say_why() {
    let mut unit = authority("soon");
    assert_eq!(unit.status().unwrap().workload, Workload::Blocked);
    assert!(
        message(&unit).starts_with("option lifetime is \"soon\", expected 3s to 825d"),
        "{}",
        message(&unit)
    );
    unit.config("lifetime", "1d").config("ca-rotation", "fortnightly").run(Event::ConfigChanged).unwrap();
    assert!(message(&unit).contains("expected never, hourly, daily"), "{}", message(&unit));
}
