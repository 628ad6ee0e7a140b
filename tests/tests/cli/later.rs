//! Events that a charm defers to a later time, batches of relation members, and the changes that a hook absorbs.

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::{Value, json};

/// Returns the newest hooks of a unit.
fn journal(periapt: &Installation, unit: &str) -> anyhow::Result<Vec<Value>> {
    let shown = periapt.json(["show-unit", unit, "--journal"])?;
    let journal = shown.get(unit).and_then(|shown| shown.get("journal"));
    Ok(journal.and_then(Value::as_array).cloned().unwrap_or_default())
}

/// Returns the names of these hooks.
fn hooks(periapt: &Installation, unit: &str) -> anyhow::Result<Vec<String>> {
    let name = |hook: &Value| hook.get("hook").and_then(Value::as_str).map(str::to_owned);
    Ok(journal(periapt, unit)?.iter().filter_map(name).collect())
}

/// Returns the last hook of a name, with the changes that it absorbed.
fn last(periapt: &Installation, unit: &str, hook: &str) -> anyhow::Result<Value> {
    let journal = journal(periapt, unit)?;
    let last = journal.into_iter().rfind(|entry| entry.get("hook").is_some_and(|name| name == hook));
    last.with_context(|| format!("{unit} ran no {hook}"))
}

/// The script of a charm that becomes active.
const UP: &str = "script=start: status active up";

/// Makes `writer/0` write to its bag, and waits until it has.
fn write(periapt: &Installation, value: &str) -> anyhow::Result<()> {
    periapt.ok([
        "config",
        "writer",
        &format!("script=config-changed: tool relation-set -r db:2 key={value}"),
    ])?;
    let written = |shown: &Value| {
        let relations = shown.pointer("/writer~10/relation-info").and_then(Value::as_array);
        let key = |relation: &Value| relation.pointer("/local-unit/data/key").cloned();
        relations.into_iter().flatten().any(|relation| key(relation).is_some_and(|key| key == value))
    };
    periapt.json_until(&["show-unit", "writer/0"], written).map(drop)
}

#[test]
fn an_event_is_asked_for_shown_told_and_cancelled() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let script = "start: tool emit-later look --when-config count --data '{\"n\": 1}'\n\
                  start: tool emit-later never --after 1h --when-leader\n\
                  start: tool emit-later soon --after 1s\n\
                  soon: status active told\n";
    periapt.deploy("probe", ["--config", &format!("script={script}")])?;
    periapt.wait_for(["unit", "probe/0", "--status", "active"])?;
    periapt.wait_for(["model"])?;

    let shown = periapt.json(["show-unit", "probe/0"])?;
    let pending = &shown["probe/0"]["pending-events"];
    assert_eq!(pending[0]["name"], "look");
    assert_eq!(pending[0]["data"], "{\"n\": 1}");
    assert_eq!(pending[0]["when"], json!(["option count changes"]));
    assert_eq!(pending[1]["when"], json!(["the leader changes"]));
    assert!(pending[1]["due"].is_string(), "{pending}");
    assert_eq!(pending[2], Value::Null, "soon was told");
    assert!(periapt.ok(["show-unit", "probe/0"])?.contains("  pending-events:\n  - id: 0\n    name: look\n"));

    periapt.ok(["config", "probe", "count=true"])?;
    // The unit may rest for a moment before it is told the event.
    let is_told = |shown: &Value| {
        let journal = shown.pointer("/probe~10/journal").and_then(Value::as_array);
        journal.and_then(|journal| journal.last()).is_some_and(|last| last["hook"] == "look")
    };
    periapt.json_until(&["show-unit", "probe/0", "--journal"], is_told)?;
    let hooks = hooks(&periapt, "probe/0")?;
    assert!(hooks.ends_with(&["config-changed".into(), "look".into()]), "{hooks:?}");

    assert!(periapt.refused(["cancel-event", "probe/0", "0"])?.contains("waits for no event 0"));
    periapt.ok(["cancel-event", "probe/0", "1"])?;
    let shown = periapt.json(["show-unit", "probe/0"])?;
    assert_eq!(shown["probe/0"]["pending-events"], Value::Null);
    Ok(())
}

#[test]
fn a_crowd_is_told_in_one_hook_and_the_journal_names_it() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let script = "start: status active up\ncrowd-relation-batch: tool relation-list\ncrowd-relation-batch: fail not yet";
    periapt.deploy("probe", ["--config", &format!("script={script}")])?;
    periapt.ok(["deploy", "probe.charm", "member", "-n", "4", "--config", UP])?;
    periapt.ok(["integrate", "probe:crowd", "member:member"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    periapt.wait_for(["application", "member", "--units", "4"])?;

    periapt.ok(["config", "probe", "script=*: tool relation-batch --format json"])?;
    periapt.ok(["resolved", "probe/0"])?;
    periapt.wait_for(["model"])?;
    let told = last(&periapt, "probe/0", "crowd-relation-batch")?;
    let everybody = json!(["member/0", "member/1", "member/2", "member/3"]);
    assert_eq!(told["batch"]["joined"], everybody, "{told}");
    assert_eq!(told["absorbed"][0], "4 units joined: member/0, member/1, member/2, member/3");
    let table = periapt.ok(["show-unit", "probe/0", "--journal"])?;
    let line = table.lines().rfind(|line| line.contains("crowd-relation-batch")).unwrap_or_default();
    assert!(line.contains("  ok ") && line.ends_with(told["absorbed"][0].as_str().unwrap_or("?")), "{table}");
    let log = periapt.ok(["debug-log", "--replay", "--no-tail"])?;
    assert!(log.contains("\"joined\":[\"member/0\",\"member/1\",\"member/2\",\"member/3\"]"), "{log}");

    // A member that comes and goes while the unit is in error causes no hook, but is counted.
    periapt.ok(["config", "probe", "script=config-changed: fail not yet"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    periapt.ok(["add-unit", "member"])?;
    periapt.wait_for(["application", "member", "--units", "5"])?;
    periapt.ok(["remove-unit", "member/4", "member/3", "--no-prompt"])?;
    periapt.wait_for(["application", "member", "--units", "3"])?;
    periapt.ok(["config", "probe", "script="])?;
    periapt.ok(["resolved", "probe/0"])?;
    periapt.wait_for(["model"])?;
    let told = last(&periapt, "probe/0", "crowd-relation-batch")?;
    assert_eq!(
        told["absorbed"],
        json!(["1 unit departed: member/3", "1 unit came and went: member/4"]),
        "{told}"
    );
    Ok(())
}

#[test]
fn what_was_merged_and_what_was_passed_over_is_in_the_journal() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let script = "script=start: status active up\nsink-relation-changed: fail not yet";
    periapt.deploy("probe", ["--config", script])?;
    periapt.ok(["deploy", "probe.charm", "writer", "--config", UP])?;
    periapt.ok(["integrate", "probe:sink", "writer:db"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    periapt.wait_for(["application", "writer"])?;
    for value in ["1", "2", "3"] {
        write(&periapt, value)?;
        periapt.ok(["config", "probe", &format!("script=# {value}")])?;
    }
    periapt.ok(["resolved", "probe/0", "--no-retry"])?;
    periapt.wait_for(["model"])?;
    let skipped = last(&periapt, "probe/0", "sink-relation-changed")?;
    assert_eq!(skipped["result"], "skipped", "{skipped}");
    let changed = last(&periapt, "probe/0", "config-changed")?;
    assert_eq!(changed["absorbed"][0], "3 changes of the settings", "{changed}");

    // The member wrote while its reader was in error for another reason.
    periapt.ok(["config", "probe", "script=config-changed: fail not yet"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    for value in ["4", "5"] {
        write(&periapt, value)?;
    }
    periapt.ok(["config", "probe", "script="])?;
    periapt.ok(["resolved", "probe/0"])?;
    periapt.wait_for(["model"])?;
    let changed = last(&periapt, "probe/0", "sink-relation-changed")?;
    assert_eq!(changed["absorbed"], json!(["2 changes of writer/0's settings"]), "{changed}");
    Ok(())
}
