//! Replays of hooks from the journal, by the operator.

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, packed};
use serde_json::Value;

use crate::{
    secrets::{logged, related},
    users::colleague,
    workloads::Scene,
};

/// Returns the part of a document at a path, or null.
fn at<'a>(document: &'a Value, path: &str) -> &'a Value {
    document.pointer(path).unwrap_or(&Value::Null)
}

/// Returns the seqs and the events of a unit's hooks, the oldest first.
fn hooks(periapt: &Installation, unit: &str) -> anyhow::Result<Vec<(String, String)>> {
    let journal = periapt.json(["hooks", unit])?;
    let entries = journal.pointer("/entries").and_then(Value::as_array).context("entries")?;
    Ok(entries
        .iter()
        .map(|entry| (at(entry, "/record/seq").to_string(), at(entry, "/record/event").to_string()))
        .collect())
}

/// Replays a hook that must be the same again, and returns what is shown of it.
fn replayed(periapt: &Installation, unit: &str, seq: &str) -> anyhow::Result<Value> {
    let shown = periapt.json(["replay-hook", unit, seq, "--show-output"])?;
    ensure!(*at(&shown, "/same") == true, "{shown}");
    ensure!(at(&shown, "/recorded") == at(&shown, "/replayed"), "{shown}");
    ensure!(at(&shown, "/recorded/fuel").as_u64().is_some_and(|fuel| fuel > 0), "{shown}");
    Ok(shown)
}

/// Replays all hooks of a unit, and returns their number.
fn replay_all(periapt: &Installation, unit: &str) -> anyhow::Result<usize> {
    let hooks = hooks(periapt, unit)?;
    for (seq, event) in &hooks {
        replayed(periapt, unit, seq).with_context(|| format!("{event} of {unit}"))?;
    }
    Ok(hooks.len())
}

#[test]
fn every_hook_of_related_charms_is_the_same_in_its_replay() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("mysql", [])?;
    periapt.deploy("wordpress", [])?;
    periapt.ok(["integrate", "wordpress", "mysql"])?;
    periapt.wait_for(["application", "wordpress", "--status", "active"])?;
    periapt.wait_for(["model"])?;
    for unit in ["mysql/0", "wordpress/0"] {
        let number = replay_all(&periapt, unit)?;
        assert!(number >= 5, "{unit} ran {number} hooks");
    }
    let text = periapt.ok(["replay-hook", "mysql/0"])?;
    assert!(text.contains("the replay is the same"), "{text}");
    let newest = hooks(&periapt, "mysql/0")?.pop().context("a hook")?.0;
    assert!(text.lines().nth(1).is_some_and(|line| line.starts_with(&newest)), "{newest}: {text}");

    // The archive of another charm is refused, and a copy of the right one taken.
    let other = periapt.refused(["replay-hook", "mysql/0", "--charm", "wordpress.charm"])?;
    assert!(other.contains("the hook ran the charm with the digest"), "{other}");
    periapt.ok(["replay-hook", "mysql/0", "--charm", "mysql.charm"])?;
    let missing = periapt.refused(["replay-hook", "mysql/0", "999999"])?;
    assert!(missing.contains("the journal has no hook 999999 of mysql/0"), "{missing}");
    Ok(())
}

#[test]
fn a_failed_hook_fails_again_in_its_replay_and_a_skipped_one_has_none() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.ok(["model-config", "automatically-retry-hooks=false"])?;
    let script = "script=start: emit a line of the hook\nstart: fail the disk is full";
    periapt.deploy("probe", ["--config", script])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    let newest = hooks(&periapt, "probe/0")?.pop().context("a hook")?.0;
    let shown = replayed(&periapt, "probe/0", &newest)?;
    let message = shown["replayed"]["outcome"]["failed"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the disk is full"), "{shown}");
    assert!(shown["output"].to_string().contains("a line of the hook"), "{shown}");
    let silent = periapt.ok(["replay-hook", "probe/0", &newest])?;
    assert!(silent.contains("failed") && !silent.contains("a line of the hook"), "{silent}");

    periapt.ok(["resolved", "probe/0", "--no-retry"])?;
    let is_skipped = |entry: &&Value| entry.pointer("/record/outcome") == Some(&Value::from("skipped"));
    let has_skipped =
        |journal: &Value| journal["entries"].as_array().into_iter().flatten().any(|entry| is_skipped(&entry));
    let journal = periapt.json_until(&["hooks", "probe/0"], has_skipped)?;
    let skipped = journal["entries"].as_array().into_iter().flatten().find(is_skipped);
    let skipped = skipped.context("a skipped hook")?;
    let refused = periapt.refused(["replay-hook", "probe/0", &skipped["record"]["seq"].to_string()])?;
    assert!(refused.contains("the hook was not run: an operator skipped it"), "{refused}");
    Ok(())
}

#[test]
fn hooks_with_secrets_are_replayed_for_administrators_alone() -> anyhow::Result<()> {
    let periapt = related("db-relation-created: share password=terces-yrev")?;
    logged(&periapt, "reader/0", "opened password=terces-yrev")?;
    periapt.wait_for(["model"])?;
    for unit in ["owner/0", "reader/0"] {
        replay_all(&periapt, unit)?;
    }
    let colleague = colleague(&periapt, "jane")?;
    periapt.ok(["grant", "jane", "read", "test"])?;
    let refused = colleague.refused(["replay-hook", "-m", "admin/test", "reader/0"])?;
    assert!(refused.contains("a replay needs admin access to the model"), "{refused}");
    Ok(())
}

#[test]
fn hooks_of_a_python_charm_are_the_same_in_their_replays() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    packed("python-accounts", periapt.path())?;
    periapt.ok(["deploy", "./python-accounts.charm", "accounts"])?;
    periapt.wait_for(["application", "accounts", "--status", "active"])?;
    periapt.wait_for(["model"])?;
    assert!(replay_all(&periapt, "accounts/0")? >= 3);
    // An action that fails.
    periapt.run(["run", "accounts/0", "replace-password", "account=x"])?;
    let (newest, event) = hooks(&periapt, "accounts/0")?.pop().context("a hook")?;
    assert!(event.contains("replace-password"), "{event}");
    let shown = periapt.json(["replay-hook", "accounts/0", &newest])?;
    assert_eq!(shown["same"], true, "{shown}");
    Ok(())
}

#[test]
fn a_hook_that_spoke_to_its_workload_is_replayed_without_it() -> anyhow::Result<()> {
    let scene = Scene::with_options("probe", &[])?;
    scene.boot_id()?;
    let hooks = hooks(&scene.periapt, "probe/0")?;
    let (seq, _) = hooks.iter().rfind(|(_, event)| event.contains("act")).context("an action")?;
    let shown = replayed(&scene.periapt, "probe/0", seq)?;
    assert!(shown["output"].to_string().contains("boot-id"), "{shown}");
    Ok(())
}
