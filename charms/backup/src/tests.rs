//! Tests of the charm against an in-memory unit, with a directory of the test's own as its storage.

use super::Backup;
use periapt_sdk::testing::Harness;
use periapt_sdk::{Event, Relation, Status};
use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// A directory that is removed with its test.
struct Disk(PathBuf);

impl Disk {
    fn new(test: &str) -> Self {
        let path = env::temp_dir().join(format!("backup-{}-{test}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn files(&self) -> Vec<String> {
        let files = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const CATS: &[(&str, &str)] = &[("content.post-1", "Cats"), ("entries", "1")];
const DOGS: &[(&str, &str)] =
    &[("content.post-1", "Dogs"), ("content.post-2", "More dogs"), ("entries", "2")];

/// Returns a unit with storage and one source that has published posts about cats.
fn backup(disk: &Path) -> (Harness<Backup>, Relation) {
    let mut unit = Harness::new("backup/0");
    unit.config("keep", 7).storage("data/0", disk);
    unit.run(Event::Install).unwrap();
    let blog = unit.relate("sources", "blog");
    unit.change_app(&blog, CATS).unwrap();
    (unit, blog)
}

/// Returns the last action's result about a backup.
fn result(unit: &Harness<Backup>, key: &str) -> String {
    unit.action_results()[&format!("backup.{key}")].clone()
}

#[test]
fn it_waits_for_storage_and_is_blocked_without_a_source() {
    let mut unit = Harness::<Backup>::new("backup/0");
    unit.run(Event::Start).unwrap();
    assert_eq!(unit.status(), Some(Status::waiting("for storage")));
    let disk = Disk::new("blocked");
    unit.storage("data/0", &disk.0).run(Event::Start).unwrap();
    let blocked = Status::blocked("nothing to keep: integrate an application");
    assert_eq!(unit.status(), Some(blocked));
    let failure = unit.action("create", &[]).unwrap_err();
    assert_eq!(failure.message, "there is nothing to keep: integrate an application with sources");
}

#[test]
fn what_is_restored_is_what_was_there() {
    let disk = Disk::new("restore");
    let (mut unit, blog) = backup(&disk.0);
    unit.action("create", &[("note", "\"before\"")]).unwrap();
    assert_eq!(unit.action_log()[0], "reading what blog has published");
    let before = result(&unit, "sha256");
    unit.change_app(&blog, DOGS).unwrap();
    unit.action("create", &[]).unwrap();
    assert_ne!(result(&unit, "sha256"), before);
    assert_eq!(unit.status(), Some(Status::active("2 backups, the newest 2 of blog")));

    unit.action("restore", &[("id", "1")]).unwrap();
    let given = unit.unit_bag(&blog);
    assert_eq!((given["content.post-1"].as_str(), given["restore"].as_str()), ("Cats", "1"));
    assert!(!given.contains_key("content.post-2"));
    assert_eq!(unit.status(), Some(Status::maintenance("giving backup 1 to blog")));

    // The source takes the content and confirms it in the same hook.
    unit.change_app(&blog, CATS).unwrap();
    let taken = &[("restored.backup-0", "1"), ("content.post-2", ""), ("entries", "1")];
    unit.change_app(&blog, taken).unwrap();
    assert!(unit.unit_bag(&blog).is_empty());
    let status = Status::active("2 backups, the newest 2 of blog; restored 1 of blog");
    assert_eq!(unit.status(), Some(status));
    unit.action("create", &[]).unwrap();
    assert_eq!(result(&unit, "sha256"), before);
}

#[test]
fn an_action_that_was_cut_short_leaves_nothing_that_counts() {
    let disk = Disk::new("cut");
    let (mut unit, _) = backup(&disk.0);
    fs::write(disk.0.join("partial"), "{\"id\": 1, \"sou").unwrap();
    // An action that wrote its file and was stopped before its commit.
    unit.action("create", &[]).unwrap();
    fs::rename(disk.0.join("1.blog.json"), disk.0.join("5.blog.json")).unwrap();
    unit.action("create", &[]).unwrap();
    assert_eq!(result(&unit, "id"), "6");
    assert_eq!(disk.files(), ["5.blog.json", "6.blog.json"]);
}

#[test]
fn a_damaged_backup_is_listed_as_such_and_not_restored() {
    let disk = Disk::new("damaged");
    let (mut unit, blog) = backup(&disk.0);
    unit.action("create", &[]).unwrap();
    let file = disk.0.join("1.blog.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("Cats", "Rats")).unwrap();
    unit.action("list", &[]).unwrap();
    let error = unit.action_results()["backups.1.error"].clone();
    assert!(error.starts_with("backup 1: it is damaged: its content has the digest "), "{error}");
    let failure = unit.action("restore", &[("id", "1")]).unwrap_err();
    assert_eq!(failure.message, error);
    assert!(unit.unit_bag(&blog).is_empty());
}

#[test]
fn the_oldest_go_when_too_many_are_made_or_when_pruned() {
    let disk = Disk::new("prune");
    let (mut unit, _) = backup(&disk.0);
    unit.config("keep", 2);
    for _ in 0..3 {
        unit.action("create", &[]).unwrap();
    }
    assert_eq!(unit.action_log().last().map(String::as_str), Some("removed backup 1 of blog"));
    unit.action("prune", &[("keep", "0"), ("dry-run", "true")]).unwrap();
    assert_eq!(unit.action_results()["ids"], "2,3");
    assert_eq!(disk.files(), ["2.blog.json", "3.blog.json"]);
    unit.action("prune", &[("keep", "0"), ("dry-run", "false")]).unwrap();
    assert_eq!(disk.files(), Vec::<String>::new());
    assert_eq!(unit.status(), Some(Status::active("0 backups")));
    unit.action("create", &[]).unwrap();
    assert_eq!(result(&unit, "id"), "4", "numbers are not used again");
}

#[test]
fn sources_are_told_apart_and_must_have_published() {
    let disk = Disk::new("sources");
    let (mut unit, _) = backup(&disk.0);
    unit.relate("sources", "shop");
    let refused = |unit: &mut Harness<Backup>, source: &str| {
        let params: &[_] = if source.is_empty() { &[] } else { &[("source", source)] };
        unit.action("create", params).unwrap_err().message
    };
    assert_eq!(refused(&mut unit, ""), "say which by source=NAME: there are blog, shop");
    assert_eq!(refused(&mut unit, "\"mail\""), "mail is no source; there are: blog, shop");
    assert_eq!(refused(&mut unit, "\"shop\""), "shop has not published anything to keep yet");
    unit.action("create", &[("source", "\"blog\"")]).unwrap();
    assert_eq!(result(&unit, "source"), "blog");
}
