//! Commands that name missing entities, or make impossible requests.

use std::{
    fs,
    time::{Duration, Instant},
};

use anyhow::ensure;
use periapt_tests::{module, packed, signal};

use crate::scene::{check, check_all, quiet};

/// A charm with two endpoints for one interface.
const TWO_DATABASES: &str = "\
name: ledger
summary: s
description: d
requires:
  main: {interface: mysql}
  archive: {interface: mysql}
";

#[test]
fn settings_that_do_not_exist_or_are_of_another_type_change_nothing() -> anyhow::Result<()> {
    let periapt = quiet()?;
    packed("mysql", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    let here = periapt.path();
    fs::write(here.join("broken.yaml"), "mysql:\n  max-connections: 5\n   character-set: x\n")?;
    fs::write(here.join("nested.yaml"), "mysql:\n  max-connections: [1, 2]\n")?;
    fs::write(here.join("other.yaml"), "wordpress:\n  port: 80\n")?;
    fs::write(here.join("half.yaml"), "mysql:\n  max-connections: 7\n  speed: high\n")?;
    let unknown = vec!["\"speed\"", "character-set, max-connections"];
    check_all(
        &periapt,
        vec![
            (vec!["config", "mysql", "speed=high"], unknown.clone()),
            (vec!["config", "mysql", "max-connections=7", "speed=high"], unknown.clone()),
            (vec!["config", "mysql", "--reset", "speed"], unknown.clone()),
            (vec!["config", "mysql", "speed"], vec!["speed", "hint: "]),
            (vec!["config", "mysql", "--file", "half.yaml"], unknown.clone()),
            (vec!["deploy", "mysql.charm", "db", "--config", "speed=high"], unknown),
            (
                vec!["config", "mysql", "max-connections=many"],
                vec!["option \"max-connections\" expected int, got \"many\""],
            ),
            (
                vec!["deploy", "mysql.charm", "db", "--config", "max-connections=many"],
                vec!["option \"max-connections\" expected int, got \"many\""],
            ),
            (vec!["config", "mysql", "--file", "broken.yaml"], vec!["broken.yaml: line 3 column "]),
            (
                vec!["deploy", "mysql.charm", "db", "--config", "broken.yaml"],
                vec!["broken.yaml: line 3 column "],
            ),
            (
                vec!["config", "mysql", "--file", "nested.yaml"],
                vec!["nested.yaml: max-connections is neither"],
            ),
            (
                vec!["config", "mysql", "--file", "other.yaml"],
                vec!["other.yaml: ", "no settings for application mysql"],
            ),
            (vec!["config", "mysql", "--file", "none.yaml"], vec!["cannot read none.yaml: No such file"]),
            (vec!["config", "mysql", "max-connections=@none"], vec!["cannot read none: No such file"]),
            (vec!["model-config", "speed=high"], vec!["\"speed\"", "known are action-timeout, "]),
            (
                vec!["model-config", "automatically-retry-hooks=maybe"],
                vec!["expected true or false, got \"maybe\""],
            ),
        ],
    )
}

#[test]
fn relations_that_cannot_be_are_refused_with_what_could_be_meant() -> anyhow::Result<()> {
    let periapt = quiet()?;
    for charm in ["mysql", "wordpress"] {
        packed(charm, periapt.path())?;
        periapt.ok(["deploy", &format!("{charm}.charm")])?;
    }
    let ledger = periapt.path().join("ledger");
    fs::create_dir(&ledger)?;
    fs::write(ledger.join("charmcraft.yaml"), TWO_DATABASES)?;
    fs::copy(module("mysql")?, ledger.join("charm.wasm"))?;
    periapt.ok(["deploy", "./ledger"])?;
    check_all(
        &periapt,
        vec![
            (vec!["integrate", "wordpress:website", "mysql:db"], vec!["wordpress:website", "mysql:db"]),
            (
                vec!["integrate", "wordpress:website", "mysql"],
                vec!["no relations found", "website (provides http)", "db (provides mysql)"],
            ),
            (
                vec!["integrate", "wordpress:loadbalancer", "mysql"],
                vec!["wordpress has loadbalancer (peers by reversenginx)"],
            ),
            (
                vec!["integrate", "wordpress:sessions", "mysql"],
                vec!["sessions", "it has certificates, content, db, loadbalancer, logs, website"],
            ),
            (vec!["integrate", "mysql", "mysql"], vec!["mysql"]),
            (
                vec!["integrate", "ledger", "mysql"],
                vec!["ambiguous relation", "ledger:main mysql:db", "ledger:archive mysql:db"],
            ),
            (vec!["remove-relation", "ledger", "mysql"], vec!["relation \"ledger mysql\" not found"]),
            (vec!["remove-relation", "ledger:nothing", "mysql"], vec!["ledger:nothing"]),
        ],
    )?;
    for endpoint in ["ledger:main", "ledger:archive"] {
        periapt.ok(["integrate", endpoint, "mysql"])?;
    }
    check_all(
        &periapt,
        vec![
            (vec!["integrate", "ledger:main", "mysql"], vec!["ledger:main mysql:db", "already exists"]),
            (
                vec!["remove-relation", "ledger", "mysql"],
                vec!["ambiguous relation", "ledger:main mysql:db", "ledger:archive mysql:db"],
            ),
        ],
    )
}

#[test]
fn what_is_not_there_is_named_by_every_command() -> anyhow::Result<()> {
    let periapt = quiet()?;
    packed("mysql", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    for arguments in [
        vec!["show-unit", "mysql/7"],
        vec!["hooks", "mysql/7"],
        vec!["resolved", "mysql/7"],
        vec!["remove-unit", "mysql/7", "--no-prompt"],
        vec!["remove-unit", "mysql/7", "--no-prompt", "--force"],
    ] {
        check(&periapt, &arguments, &["mysql/7"])?;
    }
    for arguments in [
        vec!["show-application", "shop"],
        vec!["config", "shop"],
        vec!["config", "shop", "a=b"],
        vec!["add-unit", "shop"],
        vec!["expose", "shop"],
        vec!["integrate", "shop", "mysql"],
        vec!["refresh", "shop", "--path", "mysql.charm"],
        vec!["remove-application", "shop", "--no-prompt"],
        vec!["hooks", "shop/0"],
    ] {
        check(&periapt, &arguments, &["shop"])?;
    }
    check_all(
        &periapt,
        vec![
            (vec!["remove-machine", "7", "--no-prompt"], vec!["7"]),
            (vec!["remove-relation", "7"], vec!["7"]),
            (vec!["deploy", "mysql.charm", "db", "--to", "agent=nobody"], vec!["nobody"]),
            (vec!["destroy-model", "nowhere", "--no-prompt"], vec!["nowhere"]),
            (vec!["status", "-m", "nowhere"], vec!["nowhere"]),
            (vec!["switch", "nowhere"], vec!["nowhere"]),
        ],
    )
}

#[test]
fn a_controller_that_is_down_is_told_by_every_command() -> anyhow::Result<()> {
    let periapt = quiet()?;
    packed("mysql", periapt.path())?;
    periapt.ok(["deploy", "mysql.charm"])?;
    let client = || fs::read_to_string(periapt.path().join("data/client.json"));
    let before = client()?;
    signal(periapt.controller_process("local")?, "KILL")?;
    // A dying controller still accepts connections, and resets them.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !periapt.refused(["models"])?.contains("onnection refused") {
        ensure!(Instant::now() < deadline, "the controller does not die");
    }
    for arguments in [
        vec!["status"],
        vec!["models"],
        vec!["agents"],
        vec!["add-model", "other"],
        vec!["deploy", "mysql.charm", "db"],
        vec!["config", "mysql", "max-connections=7"],
        vec!["integrate", "mysql", "wordpress"],
        vec!["remove-application", "mysql", "--no-prompt"],
        vec!["resolved", "mysql/0"],
        vec!["show-unit", "mysql/0"],
        vec!["debug-log", "--no-tail"],
        vec!["destroy-model", "test", "--no-prompt"],
        vec!["destroy-controller", "local", "--no-prompt", "--destroy-all-models"],
    ] {
        let done = periapt.run(&arguments)?;
        let error = done.one_error()?;
        for part in ["does not answer", "onnection refused", "hint: ", "periapt controller start"] {
            assert!(error.contains(part), "{arguments:?} does not say {part}: {error}");
        }
        assert_eq!(done.stdout, "", "{arguments:?}");
        assert_eq!(client()?, before, "{arguments:?}");
    }
    periapt.ok(["controller", "start"])?;
    let status = periapt.json(["status"])?;
    assert_eq!(status["applications"].as_object().map(serde_json::Map::len), Some(1), "{status}");
    assert_eq!(periapt.json(["models"])?["models"].as_array().map(Vec::len), Some(1));
    Ok(())
}
