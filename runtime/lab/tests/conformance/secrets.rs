//! M: secrets, and G18.

use std::{cell::RefCell, rc::Rc, time::Duration};

use periapt_host_api::{
    command::{Answer, Command, SecretSelector},
    secret::{Confidential, SecretData},
};
use periapt_lab::{Action, Lab, LabCharm};

const OWNER: &str = "
name: owner
type: charm
summary: s
description: d
provides: {db: {interface: db}}
peers: {ring: {interface: ring}}
";

const READER: &str = "
name: reader
type: charm
summary: s
description: d
requires: {db: {interface: db}}
config:
  options:
    token: {type: secret}
";

/// The notes of hooks, in order.
type Notes = Rc<RefCell<Vec<String>>>;

/// A settled owner and reader in one relation. The owner's leader has made `password=one` and granted it.
struct Scene {
    lab: Lab,
    uri: Rc<RefCell<String>>,
    notes: Notes,
}

impl Scene {
    fn new() -> Self {
        let mut lab = Lab::new(7).unwrap();
        let uri: Rc<RefCell<String>> = Rc::default();
        let notes: Notes = Rc::default();
        let (owner, reader) = (LabCharm::new(OWNER).unwrap(), LabCharm::new(READER).unwrap());
        lab.deploy("owner", &owner, 2).unwrap();
        lab.deploy("reader", &reader, 1).unwrap();
        let made = Rc::clone(&uri);
        lab.script(
            "owner/0",
            "db-relation-created",
            vec![Action::Do(Rc::new(move |hook| {
                let printed = hook.tool("secret-add --label pw password=one")?;
                printed.trim_end().clone_into(&mut made.borrow_mut());
                hook.tool(&format!("secret-grant {}", made.borrow())).map(|_| ())
            }))],
        )
        .unwrap();
        lab.run_until_idle().unwrap();
        lab.integrate("owner:db", "reader:db").unwrap();
        lab.run_until_idle().unwrap();
        let scene = Self { lab, uri, notes };
        assert!(scene.uri.borrow().starts_with("secret:"), "the leader made it");
        scene
    }

    /// Runs lines in an update-status hook of a unit.
    fn run(&mut self, unit: &str, lines: &[&str]) {
        let (uri, notes) = (self.uri.borrow().clone(), Rc::clone(&self.notes));
        let lines: Vec<String> = lines.iter().map(|line| line.replace("URI", &uri)).collect();
        let done = Rc::new(RefCell::new(false));
        let action = Action::Do(Rc::new(move |hook| {
            if std::mem::replace(&mut *done.borrow_mut(), true) {
                return Ok(());
            }
            for line in &lines {
                let said = hook.tool(line).unwrap_or_else(|error| error);
                notes.borrow_mut().push(said.trim_end().to_owned());
            }
            Ok(())
        }));
        self.lab.script(unit, "update-status", vec![action]).unwrap();
        self.lab.advance(Duration::from_secs(400)).unwrap();
        self.lab.run_until_idle().unwrap();
        self.lab.unscript(unit, "update-status").unwrap();
    }

    fn take_notes(&self) -> Vec<String> {
        std::mem::take(&mut self.notes.borrow_mut())
    }

    fn hooks(&self, unit: &str, name: &str) -> usize {
        self.lab.hooks_of(unit).iter().filter(|hook| hook.starts_with(name)).count()
    }
}

/// S-1, S-2.
#[test]
fn m01_a_newer_revision_is_told_once_and_the_tracked_one_is_read() {
    let mut scene = Scene::new();
    scene.run("reader/0", &["secret-get URI password"]);
    scene.run("owner/0", &["secret-set URI password=two"]);
    scene.run("owner/0", &["secret-set URI password=three"]);
    scene.lab.advance(Duration::from_secs(1_000)).unwrap();
    assert_eq!(scene.hooks("reader/0", "secret-changed"), 2, "once for each new revision");
    scene.run("reader/0", &["secret-get URI password", "secret-get URI password --peek"]);
    assert_eq!(scene.take_notes(), ["one", "", "", "one", "three"]);
    assert_eq!(scene.hooks("reader/0", "secret-changed"), 2, "a hook that ignores it is not told again");
}

/// S-1.
#[test]
fn m02_a_refresh_moves_what_is_tracked() {
    let mut scene = Scene::new();
    scene.run("reader/0", &["secret-get URI password"]);
    scene.run("owner/0", &["secret-set URI password=two"]);
    scene.run("reader/0", &["secret-get URI password --refresh", "secret-get URI password"]);
    assert_eq!(scene.take_notes(), ["one", "", "two", "two"]);
    scene.run("reader/0", &["secret-get URI password"]);
    assert_eq!(scene.take_notes(), ["two"]);
}

/// S-3.
#[test]
fn m04_equal_content_makes_no_revision_and_no_event() {
    let mut scene = Scene::new();
    scene.run("reader/0", &["secret-get URI"]);
    scene.run("owner/0", &["secret-set URI password=one"]);
    assert_eq!(scene.hooks("reader/0", "secret-changed"), 0);
    let secret = scene.lab.state().unwrap().secrets().next().unwrap().latest.0;
    assert_eq!(secret, 1);
}

/// S-7, S-9.
#[test]
fn m05_only_the_leader_is_told_to_rotate_until_it_does() {
    let mut scene = Scene::new();
    scene.run("owner/0", &["secret-set URI --rotate hourly"]);
    scene.lab.advance(Duration::from_secs(3_700)).unwrap();
    scene.lab.run_until_idle().unwrap();
    let first = scene.hooks("owner/0", "secret-rotate");
    assert!(first >= 1, "rotation was due");
    assert_eq!(scene.hooks("owner/1", "secret-rotate"), 0);
    scene.lab.advance(Duration::from_secs(310)).unwrap();
    scene.lab.run_until_idle().unwrap();
    assert_eq!(scene.hooks("owner/0", "secret-rotate"), first + 1, "not acted upon: told again");
    let uri = scene.uri.borrow().clone();
    let rotate = Action::tool(&format!("secret-set {uri} password=rotated"));
    scene.lab.script("owner/0", "secret-rotate", vec![rotate]).unwrap();
    scene.lab.advance(Duration::from_secs(310)).unwrap();
    scene.lab.run_until_idle().unwrap();
    let acted = scene.hooks("owner/0", "secret-rotate");
    assert_eq!(acted, first + 2);
    scene.lab.advance(Duration::from_secs(1_800)).unwrap();
    scene.lab.run_until_idle().unwrap();
    assert_eq!(scene.hooks("owner/0", "secret-rotate"), acted, "the next date is an hour away");
}

/// S-8.
#[test]
fn m06_the_owner_hears_once_of_a_revision_that_nobody_tracks() {
    let mut scene = Scene::new();
    scene.run("reader/0", &["secret-get URI"]);
    scene.run("owner/0", &["secret-set URI password=two"]);
    assert_eq!(scene.hooks("owner/0", "secret-remove"), 0, "the reader tracks it still");
    scene.run("reader/0", &["secret-get URI --refresh"]);
    scene.lab.advance(Duration::from_secs(1_000)).unwrap();
    assert_eq!(scene.hooks("owner/0", "secret-remove"), 1);
    assert_eq!(scene.hooks("owner/1", "secret-remove"), 0);
}

/// S-4, C-1.
#[test]
fn m10_what_a_failing_hook_made_was_readable_in_it_and_is_gone() {
    let mut scene = Scene::new();
    let seen: Notes = Rc::default();
    let notes = Rc::clone(&seen);
    let action = Action::Do(Rc::new(move |hook| {
        let uri = hook.tool("secret-add --owner unit token=abc")?;
        notes.borrow_mut().push(hook.tool(&format!("secret-get {} token", uri.trim_end()))?);
        notes.borrow_mut().push(hook.tool("secret-ids")?);
        Err("on purpose".to_owned())
    }));
    scene.lab.script("reader/0", "config-changed", vec![action]).unwrap();
    let id = add_user_secret(&mut scene.lab, "t", "x");
    scene.lab.configure("reader", &[("token", &id)]).unwrap();
    scene.lab.advance(Duration::from_secs(1)).unwrap();
    assert_eq!(seen.borrow().first().map(|said| said.trim_end()), Some("abc"));
    assert_eq!(seen.borrow().get(1).map(|said| said.trim_end().len()), Some(20));
    assert_eq!(scene.lab.state().unwrap().secrets().count(), 2, "the owner's and the user's");
}

/// S-6.
#[test]
fn g18_grants_go_with_their_relation() {
    let mut scene = Scene::new();
    scene.run("reader/0", &["secret-get URI password"]);
    assert_eq!(scene.take_notes(), ["one"]);
    let relation = scene.lab.state().unwrap().relations().find(|it| !it.is_peer()).unwrap().id;
    scene.lab.remove_relation(relation).unwrap();
    scene.lab.run_until_idle().unwrap();
    scene.run("reader/0", &["secret-get URI password"]);
    let said = scene.take_notes();
    assert!(said.iter().all(|said| said.ends_with("ERROR permission denied")), "{said:?}");
}

/// The view of the owner's host has the owner's secret, the other host's view does not (S-7).
#[test]
fn a_secret_without_a_grant_is_denied_on_every_host_and_one_that_is_not_there_is_not_found() {
    let mut scene = Scene::new();
    scene.lab.add_agent("far").unwrap();
    let reader = LabCharm::new(READER).unwrap();
    for (application, agent) in [("near", "host"), ("away", "far")] {
        scene.lab.deploy_to(application, &reader, 1, agent).unwrap();
    }
    scene.lab.run_until_idle().unwrap();
    let owned = |agent: &str| scene.lab.mirror(agent).unwrap().secrets.len();
    assert_eq!((owned("host"), owned("far")), (1, 0), "who sees that there is a secret");
    let users = add_user_secret(&mut scene.lab, "t", "hunter2");
    let lines = [
        "secret-get URI",
        "secret-get URI --peek",
        &format!("secret-get {users} password"),
        "secret-get secret:00000000000000000000",
        "secret-get 00000000000000000000 --refresh",
        "secret-info-get URI",
    ];
    let denied = "permission denied".to_owned();
    let missing = "secret \"00000000000000000000\" not found".to_owned();
    let unmanaged = format!("secret {:?} not found", scene.uri.borrow().trim_start_matches("secret:"));
    let expected = [&denied, &denied, &denied, &missing, &missing, &unmanaged];
    for unit in ["near/0", "away/0"] {
        scene.run(unit, &lines);
        let said = scene.take_notes();
        for (line, (said, expected)) in lines.iter().zip(said.iter().zip(expected)) {
            assert!(said.ends_with(&format!("ERROR {expected}")), "{unit}: {line}: {said}");
        }
        assert_eq!(said.len(), lines.len(), "{unit}");
    }
}

fn add_user_secret(lab: &mut Lab, name: &str, value: &str) -> String {
    let content = SecretData::from_texts([("password".to_owned(), value.to_owned())]).unwrap();
    let content = Confidential::Open(content);
    let add = Command::AddSecret { id: None, name: name.to_owned(), content, description: String::new() };
    match lab.command(&add).unwrap() {
        Answer::Secret { id } => id.uri(),
        other => panic!("{other:?}"),
    }
}

/// An option of type secret names a secret of the model's users, which units read once it is granted (6.2).
#[test]
fn a_users_secret_is_read_once_it_is_granted() {
    let mut scene = Scene::new();
    assert!(scene.lab.configure("reader", &[("token", "secret:00000000000000000000")]).is_err());
    assert!(scene.lab.configure("reader", &[("token", &scene.uri.borrow().clone())]).is_err());
    let uri = add_user_secret(&mut scene.lab, "t", "hunter2");
    scene.lab.configure("reader", &[("token", &uri)]).unwrap();
    *scene.uri.borrow_mut() = uri.clone();
    scene.run("reader/0", &["config-get token", "secret-get URI password"]);
    let said = scene.take_notes();
    assert_eq!(said.first(), Some(&uri));
    assert!(said.get(1).is_some_and(|said| said.ends_with("ERROR permission denied")), "{said:?}");
    let secret = SecretSelector::from("t");
    let applications = vec!["reader".parse().unwrap()];
    scene.lab.command(&Command::GrantSecret { secret, applications }).unwrap();
    scene.run("reader/0", &["secret-get URI password"]);
    assert_eq!(scene.take_notes(), ["hunter2"]);
}

/// Content in the open is in no view and in no stored entity (`docs/design/secrets.md`).
#[test]
fn no_view_and_no_store_holds_content() {
    let mut scene = Scene::new();
    scene.run("owner/0", &["secret-set URI password=hunter2hunter2"]);
    scene.run("reader/0", &["secret-get URI password --refresh"]);
    assert!(scene.take_notes().contains(&"hunter2hunter2".to_owned()));
    let view = serde_json::to_string(
        &scene.lab.mirror("host").unwrap().full_frame(periapt_host_api::StoreId(uuid::Uuid::nil())),
    )
    .unwrap();
    let records: String = ["owner/0", "reader/0"]
        .iter()
        .map(|unit| format!("{:?}", scene.lab.records_of(unit).collect::<Vec<_>>()))
        .collect();
    for hidden in ["hunter2hunter2", "aHVudGVyMmh1bnRlcjI="] {
        assert!(!view.contains(hidden) && !records.contains(hidden));
    }
    assert!(view.contains("password") || view.contains("pw"), "the secret itself is seen");
}
