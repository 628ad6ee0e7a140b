//! Tests that the probe runs its script, and does nothing in other hooks.

use super::Probe;
use periapt_sdk::testing::Harness;
use periapt_sdk::{
    Event, Outcome, Output, PebbleOutput, Ports, RelationCreated, Secret, SecretEvent, Status,
};

fn probe(script: &str) -> Harness<Probe> {
    let mut unit = Harness::new("probe/0");
    unit.declares(include_str!("../charmcraft.yaml")).config("script", script);
    unit
}

fn lines(unit: &Harness<Probe>) -> Vec<&str> {
    unit.log().iter().map(|(_, line)| line.as_str()).collect()
}

#[test]
fn every_event_is_logged_with_its_context() {
    let mut unit = probe("");
    let sink = unit.relate("sink", "other");
    assert_eq!(unit.run(Event::Install), Ok(Outcome::Handled));
    unit.join(&sink, "other/3", &[]).unwrap();
    unit.change_app(&sink, &[("k", "v")]).unwrap();
    unit.end(&sink).unwrap();
    assert_eq!(
        lines(&unit),
        [
            "event install attempt=1",
            "event sink-relation-joined relation=sink:0 app=other unit=other/3 attempt=1",
            "event sink-relation-changed relation=sink:0 app=other unit=other/3 attempt=1",
            "event sink-relation-changed relation=sink:0 app=other attempt=1",
            "event sink-relation-departed relation=sink:0 app=other unit=other/3 departing=other/3 attempt=1",
            "event sink-relation-broken relation=sink:0 app=other attempt=1",
        ]
    );
}

#[test]
fn a_failing_hook_leaves_its_status_and_nothing_else() {
    let mut unit = probe("*: set k=v\n*: open-port 80\n*: status maintenance trying\nstart: fail no luck");
    let sink = unit.relate("sink", "other");
    let failure = unit.run(Event::Start).unwrap_err();
    assert_eq!((failure.code, failure.message.as_str()), (1, "no luck"));
    assert!(unit.unit_bag(&sink).is_empty() && unit.opened_ports().is_empty());
    assert_eq!(unit.status(), Some(Status::maintenance("trying")));
    unit.run(Event::Stop).unwrap();
    assert_eq!(unit.unit_bag(&sink)["k"], "v");
    assert_eq!(unit.opened_ports()[0].ports, Ports::tcp(80));
}

#[test]
fn what_is_stored_lasts_unless_the_hook_fails() {
    let mut unit = probe("install: store k=1\nstart: store k=2\nstart: fail no luck");
    unit.run(Event::Install).unwrap();
    unit.run(Event::Start).unwrap_err();
    assert_eq!(unit.stored()["k"], "1");
}

#[test]
fn only_the_leader_writes_the_application_bag() {
    let mut unit = probe("*: app-set k=v");
    let sink = unit.relate("sink", "other");
    let failure = unit.run(Event::Start).unwrap_err();
    assert_eq!(failure.message, "bag of probe in sink:0: cannot write relation settings");
    unit.leader(true).run(Event::Start).unwrap();
    assert_eq!(unit.app_bag(&sink)["k"], "v");
}

#[test]
fn hooks_are_counted_once_for_each_that_succeeded() {
    let mut unit = probe("stop: fail x");
    let peers = unit.relate("peer", "probe");
    unit.config("count", true);
    unit.run(Event::Install).unwrap();
    unit.run(Event::Stop).unwrap_err();
    unit.run(Event::Start).unwrap();
    assert_eq!(unit.unit_bag(&peers)["hooks"], "2");
}

#[test]
fn hooks_are_entered_for_the_peers_but_for_those_that_their_entries_cause() {
    let mut unit = probe("stop: fail x");
    let peers = unit.relate("peer", "probe");
    unit.config("ledger", true);
    unit.run(Event::Install).unwrap();
    assert!(unit.unit_bag(&peers).is_empty(), "there is no tally yet");
    let tally = unit.relate("tally", "desk");
    unit.run(Event::Install).unwrap();
    unit.run(Event::Stop).unwrap_err();
    unit.join(&peers, "probe/1", &[("ledger", "1 install")]).unwrap();
    unit.change(&peers, "probe/1", &[("ledger", "1 install\n2 start")]).unwrap();
    unit.run(Event::Start).unwrap();
    let hooks: usize = unit.unit_bag(&tally)["hooks"].parse().unwrap();
    let ledger = unit.unit_bag(&peers)["ledger"].clone();
    assert_eq!(ledger, format!("1 install\n2 peer-relation-joined\n{hooks} start"));
    assert!(hooks > 3, "the changes were counted: {hooks}");
}

#[test]
fn a_ledger_keeps_its_newest_entries() {
    let mut unit = probe("");
    let peers = unit.relate("peer", "probe");
    let tally = unit.relate("tally", "desk");
    unit.config("ledger", true);
    for _ in 0..250 {
        unit.run(Event::UpdateStatus).unwrap();
    }
    let bag = unit.unit_bag(&peers);
    assert_eq!(unit.unit_bag(&tally)["hooks"], "250");
    assert_eq!(bag["ledger"].lines().count(), 200);
    assert!(bag["ledger"].starts_with("51 ") && bag["ledger"].ends_with("250 update-status"));
}

#[test]
fn the_argv_door_is_asked_and_its_answer_logged() {
    let mut unit = probe("install: tool config-get --format=json 'a b'");
    unit.tools(|name, args| Output {
        code: 2,
        stdout: format!("{name} {args:?}\n"),
        stderr: "ERROR no\n".to_owned(),
    });
    unit.run(Event::Install).unwrap();
    assert_eq!(lines(&unit)[1], r#"tool config-get: 2 config-get ["--format=json", "a b"] ERROR no"#);
}

#[test]
fn a_script_runs_in_a_container_and_its_end_is_logged() {
    let mut unit = probe("install: shell web 500 cat; exit 3");
    unit.container("web").runs(|command, stdin| PebbleOutput {
        code: 3,
        stdout: stdin.to_vec(),
        stderr: command.join(" ").into_bytes(),
    });
    unit.run(Event::Install).unwrap();
    assert_eq!(lines(&unit)[1], r#"shell: code 3, 400000 bytes "aaa", "sh -c cat; exit 3""#);
}

#[test]
fn a_status_can_end_a_hook_that_succeeds() {
    let mut unit = probe("*: stop blocked needs a hand\n*: fail not reached");
    assert_eq!(unit.run(Event::Install), Ok(Outcome::Handled));
    assert_eq!(unit.status(), Some(Status::blocked("needs a hand")));
}

#[test]
fn a_secret_is_shared_opened_and_pruned() {
    let mut owner = probe("db-relation-created: share password=owt\n*: revise password=eerht");
    owner.leader(true);
    let db = owner.relate("db", "reader");
    owner
        .run(Event::RelationCreated(RelationCreated { relation: db.clone(), app: "reader".into() }))
        .unwrap();
    let secret = Secret::new(owner.app_bag(&db)["secret"].clone());
    let (revision, content) = owner.secret(&secret).unwrap();
    assert_eq!(
        (revision, content.text("password").unwrap()),
        (1, "three"),
        "revised in the hook that made it"
    );
    assert_eq!(owner.secret_readers(&secret), ["reader"]);

    let mut reader = probe("*: open");
    let theirs = reader.grant_secret(&[("password", "one")]);
    let sink = reader.relate("sink", "owner");
    reader.change_app(&sink, &[("secret", theirs.uri())]).unwrap();
    reader.revise_secret(&theirs, &[("password", "two")]);
    let about = SecretEvent { uri: theirs.uri().to_owned(), label: None };
    reader.run(Event::SecretChanged(about)).unwrap();
    let opened: Vec<_> = lines(&reader).into_iter().filter(|line| line.starts_with("opened")).collect();
    assert_eq!(opened, ["opened password=eno", "opened password=owt"]);
}

#[test]
fn a_resource_is_read_where_it_is() {
    let file = std::env::temp_dir().join(format!("probe-resource-{}", std::process::id()));
    std::fs::write(&file, "a,b").unwrap();
    let mut unit = probe("install: resource data\nstart: resource other");
    unit.resource("data", &file, "ab").resource("data", &file, "cd");
    unit.run(Event::Install).unwrap();
    let told = format!("resource {} revision=2 size=3 sha256=cd read=3: a,b", file.display());
    assert_eq!(lines(&unit)[1], told);
    std::fs::remove_file(&file).unwrap();
    let failure = unit.run(Event::Start).unwrap_err();
    assert_eq!(failure.message, "could not download resource: resource \"other\" not found");
}
