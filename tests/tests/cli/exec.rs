//! Hook tools that operators run: `exec`, what there is to run, and how it is told.

use periapt_tests::Installation;
use serde_json::{Value, json};

/// Units of the probe that have settled.
fn probes(units: &str, script: &str) -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    let script = format!("script={script}");
    periapt.deploy("probe", ["-n", units, "--config", &script])?;
    periapt.wait_for(["application", "probe", "--units", units, "--status", "unknown"])?;
    Ok(periapt)
}

#[test]
fn a_tool_runs_in_a_hook_context_of_each_unit() -> anyhow::Result<()> {
    let periapt = probes("2", "")?;
    assert_eq!(periapt.ok(["exec", "--unit", "probe/0", "--", "config-get", "count"])?, "False\n");
    assert_eq!(periapt.ok(["exec", "-u", "probe/leader", "leader-set key=value"])?, "");
    let both = periapt.ok(["exec", "--application", "probe", "--", "leader-get", "key"])?;
    assert_eq!(both, "probe/0:\nvalue\n\nprobe/1:\nvalue\n\n");
    let all = periapt.ok(["exec", "--all", "--format", "json", "--", "relation-list", "-r", "peer:0"])?;
    let all: Value = serde_json::from_str(&all)?;
    assert_eq!(
        (&all["probe/0"]["results"], &all["probe/1"]["results"]["stdout"]),
        (&json!({"return-code": 0, "stdout": "probe/1\n"}), &json!("probe/0\n"))
    );
    let about = ["--relation", "peer:0", "--remote-unit", "probe/1", "--", "relation-get", "-"];
    assert!(periapt.ok(["exec", "-u", "probe/0"].into_iter().chain(about))?.contains("ingress-address"));

    // It is an operation like any other.
    let operations = periapt.json(["operations", "--actions", "juju-exec"])?;
    let first = &operations["1"];
    assert_eq!(
        (&first["summary"], &first["status"]),
        (&json!("juju-exec run on unit-probe-0"), &json!("completed"))
    );
    assert_eq!(
        first["action"],
        json!({"name": "juju-exec", "parameters": {"command": ["config-get", "count"]}})
    );
    assert_eq!(periapt.json(["show-task", "2"])?["results"]["stdout"], "False\n");
    let said =
        periapt.run(["exec", "-u", "probe/0", "--background", "--", "status-set", "active", "by hand"])?;
    assert!(said.code == Some(0) && said.stderr.contains("Scheduled operation"), "{said:?}");
    periapt.wait_for(["unit", "probe/0", "--message", "by hand"])
}

#[test]
fn a_code_that_is_not_0_is_told_and_what_takes_a_shell_is_refused() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    let failed = periapt.run(["exec", "-u", "probe/0", "--", "relation-get", "-r", "7"])?;
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert_eq!(failed.stdout, "ERROR invalid value \"7\" for option -r: relation not found\n");
    assert!(
        failed.stderr.contains("the following task failed:\n - id \"2\" with return code 2"),
        "{failed:?}"
    );
    assert_eq!(periapt.json(["show-task", "2"])?["status"], "completed");
    for (command, error) in [
        ("status-set active; leader-get", "there is no shell in a sandbox, and \";\" is a shell's"),
        ("leader-get > /tmp/x", "there is no shell in a sandbox, and \">\" is a shell's"),
        ("apt install emacs", "there is no shell in a sandbox: \"apt\" is no hook tool"),
        ("secret-get x", "secret-get is not run from outside"),
    ] {
        let said = periapt.refused(["exec", "-u", "probe/0", command])?;
        assert!(said.contains(error), "{said}");
    }
    // Of a unit that is not there it is told what Juju tells, whatever was to be run: jubilant goes by that.
    for (unit, error) in [
        ("probe/42", "failed to schedule any tasks:\nunit \"probe/42\" not found"),
        ("none/leader", "failed to schedule any tasks:\napplication \"none\" not found"),
    ] {
        let said = periapt.run(["exec", "-u", unit, "--format", "json", "--", "echo foo"])?;
        assert!(said.code == Some(0) && said.stdout.is_empty() && said.stderr.contains(error), "{said:?}");
    }
    let said = periapt.refused(["exec", "-u", "probe/42", "-u", "probe/0", "echo foo"])?;
    assert!(said.contains("\"echo\" is no hook tool"), "{said}");
    let said = periapt.refused(["exec", "leader-get"])?;
    assert!(said.contains("You must specify a target"), "{said}");
    assert!(periapt.json(["operations"])?.get("3").is_none(), "nothing was asked for");
    Ok(())
}

#[test]
fn a_unit_in_error_runs_tools() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    periapt.deploy("probe", ["--config", "script=config-changed: fail oh no"])?;
    periapt.wait_for(["unit", "probe/0", "--status", "error"])?;
    assert_eq!(periapt.ok(["exec", "-u", "probe/0", "is-leader"])?, "True\n");
    periapt.wait_for(["unit", "probe/0", "--status", "error"])
}

#[test]
fn actions_and_tools_are_explained() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    let shown = periapt.ok(["show-action", "probe", "greet"])?;
    assert!(
        shown.starts_with("Greets, through the typed door.\n\nArguments\ntimes:\n  type: integer\n"),
        "{shown}"
    );
    let json = periapt.json(["show-action", "probe", "greet"])?;
    assert_eq!(json["arguments"]["whom"], json!({"type": "string", "description": null, "default": "world"}));
    assert!(periapt.refused(["show-action", "probe", "fly"])?.contains("unknown action \"fly\""));
    assert!(periapt.ok(["help-hook-commands"])?.contains("    relation-get "));
    assert!(periapt.ok(["help-hook-commands", "relation-get"])?.starts_with("Usage: relation-get [options]"));
    assert!(periapt.ok(["help-action-commands"])?.contains("    action-set "));
    Ok(())
}
