//! Charms on the ops framework, unchanged: packed by the binary, run in the sandbox, driven by an operator.

use std::fs;

use periapt_tests::{Installation, packed};
use serde_json::{Value, json};

use crate::text;

/// Returns the message of a unit's workload status.
fn message(periapt: &Installation, unit: &str) -> anyhow::Result<String> {
    let shown = periapt.json(["show-unit", unit])?;
    Ok(text(&shown, &format!("/{}/workload-status/message", unit.replace('/', "~1")))?.to_owned())
}

/// Runs an action of a unit and returns its task.
fn task(periapt: &Installation, unit: &str, arguments: &[&str]) -> anyhow::Result<Value> {
    let shown = periapt.json([&["run", unit], arguments].concat())?;
    Ok(shown.as_object().and_then(|tasks| tasks.values().next()).cloned().unwrap_or_default())
}

#[test]
fn two_related_charms_do_what_they_do_on_juju() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    // One after the other, as compilation takes long.
    for (charm, application, status) in
        [("python-accounts", "accounts", "active"), ("python-portal", "portal", "blocked")]
    {
        packed(charm, periapt.path())?;
        periapt.ok(["deploy", &format!("./{charm}.charm"), application])?;
        periapt.wait_for(["application", application, "--status", status])?;
    }

    // The two charms share the interpreter: three modules are compiled once, and one component for each charm.
    let kept = fs::read_dir(periapt.path().join("data/controllers/local/agent/artefacts"))?;
    let mut kept = kept.map(|file| Ok(file?.metadata()?.len())).collect::<anyhow::Result<Vec<_>>>()?;
    kept.sort_unstable();
    assert_eq!(kept.len(), 5, "{kept:?}");

    // The provider defers an event until the operator changes an option: StoredState and deferred events persist
    // between hooks.
    periapt.ok(["config", "accounts", "open=false"])?;
    periapt.wait_for(["unit", "accounts/0", "--status", "maintenance"])?;
    periapt.ok(["integrate", "accounts", "portal"])?;
    periapt.wait_for(["unit", "portal/0", "--status", "waiting"])?;
    periapt.ok(["config", "accounts", "open=true"])?;
    periapt.wait_for(["unit", "portal/0", "--status", "active"])?;
    assert_eq!(message(&periapt, "portal/0")?, "Portal: signed in as portal-1");
    assert_eq!(message(&periapt, "accounts/0")?, "1 accounts given out");

    // The relation's data, the port, and a page from a template beside the code, with a granted secret.
    let portal = periapt.json(["show-unit", "portal/0"])?["portal/0"].clone();
    assert_eq!(portal["opened-ports"], json!(["8080/tcp"]));
    assert_eq!(portal["relation-info"][0]["application-data"]["account"], "portal-1");
    let shown = task(&periapt, "portal/0", &["show"])?;
    assert_eq!(shown["results"]["page"], "Portal\nsigned in as portal-1, with a password of 24 characters\n");

    // A new password is a new revision of the secret, and the action logs its progress.
    periapt.ok(["config", "accounts", "password-length=30"])?;
    let replaced = task(&periapt, "accounts/leader", &["replace-password", "account=portal-1"])?;
    assert_eq!(replaced["results"]["replaced"], "portal-1");
    assert!(text(&replaced, "/log/0")?.ends_with("the new password is on its way"), "{replaced}");
    periapt.json_until(&["run", "portal/0", "show"], |shown| {
        let mut tasks = shown.as_object().into_iter().flat_map(serde_json::Map::values);
        tasks.any(|task| {
            task["results"]["page"].as_str().is_some_and(|page| page.contains("of 30 characters"))
        })
    })?;
    let failed = periapt.run(["run", "accounts/0", "replace-password", "account=x", "--format", "json"])?;
    assert_eq!(failed.code, Some(0));
    assert!(failed.stdout.contains("there is no account x"), "{failed:?}");

    a_hostile_neighbour_is_stopped(&periapt)?;

    // The charm's own log line.
    let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "accounts/0"])?;
    assert!(log.contains("INFO unit.accounts/0.juju-log account portal-1 was given out"), "{log}");
    Ok(())
}

/// Tests a hostile charm beside others in a model; `hostile_python.rs` tests its attacks one by one.
fn a_hostile_neighbour_is_stopped(periapt: &Installation) -> anyhow::Result<()> {
    periapt.ok(["model-config", "automatically-retry-hooks=false", "hook-cpu-budget=2s"])?;
    packed("python-hostile", periapt.path())?;
    periapt.ok(["deploy", "./python-hostile.charm", "hostile", "-n", "3"])?;
    periapt.wait_for(["application", "hostile", "--status", "active"])?;
    // All three units loop at the same time, while the neighbours must answer.
    periapt.ok(["config", "hostile", "mode=loop"])?;
    let shown = task(periapt, "portal/0", &["show"])?;
    assert!(text(&shown, "/results/page")?.starts_with("Portal\n"), "{shown}");
    for unit in ["hostile/0", "hostile/1", "hostile/2"] {
        periapt.wait_for(["unit", unit, "--status", "error"])?;
        let shown = periapt.json(["show-unit", unit])?;
        let operation = text(&shown, &format!("/{}/operation", unit.replace('/', "~1")))?;
        assert!(operation.contains("cpu budget exceeded"), "{operation}");
    }
    assert_eq!(message(periapt, "portal/0")?, "Portal: signed in as portal-1");
    Ok(())
}

#[test]
fn a_charm_with_native_code_runs_and_its_panic_is_its_own() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    packed("python-native", periapt.path())?;
    for application in ["one", "two"] {
        periapt.ok(["deploy", "./python-native.charm", application])?;
        periapt.wait_for(["application", application, "--status", "active"])?;
        let unit = format!("{application}/0");
        assert_eq!(message(&periapt, &unit)?, "Plain(kind='plain', port=25)");
    }

    // The charm's three libraries are compiled as separate modules, like the interpreter's three.
    let kept = fs::read_dir(periapt.path().join("data/controllers/local/agent/artefacts"))?;
    assert_eq!(kept.count(), 7);

    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    periapt.ok(["config", "one", "mode=panic"])?;
    periapt.wait_for(["unit", "one/0", "--status", "error"])?;
    let shown = periapt.json(["show-unit", "one/0"])?;
    let operation = text(&shown, "/one~10/operation")?;
    assert!(operation.contains("panicked"), "{operation}");
    periapt.ok(["config", "two", "port=26"])?;
    periapt.json_until(&["show-unit", "two/0"], |shown| {
        shown["two/0"]["workload-status"]["message"] == "Plain(kind='plain', port=26)"
    })?;
    Ok(())
}

#[test]
fn what_cannot_work_is_named_before_anything_is_built() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    let charm = periapt.path().join("charm");
    fs::create_dir_all(charm.join("src"))?;
    fs::write(charm.join("charmcraft.yaml"), "name: broken\nsummary: s\ndescription: d\n")?;
    fs::write(charm.join("src/charm.py"), "import logging\nimport bz2\n\nlogging.info(bz2)\n")?;
    let said = periapt.refused(["pack", "charm"])?;
    assert!(said.contains("src/charm.py:2: module bz2 is not in the sandbox's Python"), "{said}");
    assert!(!periapt.path().join("broken.charm").exists());
    Ok(())
}
