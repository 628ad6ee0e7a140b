//! Scripts that operators run with `exec`: their commands and their output.

use periapt_tests::Installation;
use serde_json::{Value, json};

/// Creates settled units of the probe.
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

    // The script is an operation like any other.
    let operations = periapt.json(["operations", "--actions", "juju-exec"])?;
    let first = &operations["1"];
    assert_eq!(
        (&first["summary"], &first["status"]),
        (&json!("juju-exec run on unit-probe-0"), &json!("completed"))
    );
    assert_eq!(first["action"], json!({"name": "juju-exec", "parameters": {"command": "config-get count"}}));
    assert_eq!(periapt.json(["show-task", "2"])?["results"]["stdout"], "False\n");
    let said =
        periapt.run(["exec", "-u", "probe/0", "--background", "--", "status-set", "active", "by hand"])?;
    assert!(said.code == Some(0) && said.stderr.contains("Scheduled operation"), "{said:?}");
    periapt.wait_for(["unit", "probe/0", "--message", "by hand"])
}

#[test]
fn a_code_that_is_not_0_is_told_and_what_cannot_be_run_is_refused() -> anyhow::Result<()> {
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
        ("secret-get x", "secret-get is not run from outside"),
        ("true && x=$(secret-add password=hunter2)", "secret-add is not run from outside"),
        (" ", "no commands specified"),
    ] {
        let said = periapt.refused(["exec", "-u", "probe/0", command])?;
        assert!(said.contains(error), "{said}");
    }
    // For a missing unit, `exec` prints Juju's error whatever the script: jubilant relies on it.
    for (unit, error) in [
        ("probe/42", "failed to schedule any tasks:\nunit \"probe/42\" not found"),
        ("none/leader", "failed to schedule any tasks:\napplication \"none\" not found"),
    ] {
        let said = periapt.run(["exec", "-u", unit, "--format", "json", "--", "echo foo"])?;
        assert!(said.code == Some(0) && said.stdout.is_empty() && said.stderr.contains(error), "{said:?}");
    }
    let said = periapt.refused(["exec", "-u", "probe/42", "-u", "probe/0", "secret-get x"])?;
    assert!(said.contains("secret-get is not run from outside"), "{said}");
    let said = periapt.refused(["exec", "leader-get"])?;
    assert!(said.contains("You must specify a target"), "{said}");
    assert!(periapt.json(["operations"])?.get("3").is_none(), "nothing was asked for");
    Ok(())
}

#[test]
fn a_script_has_the_words_and_the_files_of_a_shell_in_a_unit() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    let run = |script: &str| periapt.ok(["exec", "-u", "probe/0", script]);
    assert_eq!(run("echo foo")?, "foo\n");
    assert_eq!(periapt.ok(["exec", "-u", "probe/0", "--", "echo", "bar", "a  b", "$x"])?, "bar a  b $x\n");
    assert_eq!(run("for id in $(relation-ids peer); do echo \"<$id>\"; done | wc -l")?, "1\n");
    assert_eq!(
        run("echo $JUJU_UNIT_NAME in $JUJU_MODEL_NAME at $PWD as $(hostname)")?,
        "probe/0 in test at /charm as probe-0\n"
    );
    assert_eq!(run("[ -f charmcraft.yaml ] && grep '^name:' *.yaml")?, "name: probe\n");
    assert_eq!(run("leader-set a=1; leader-set b=2; leader-get | grep -c .; exit 0")?, "2\n");
    // A script has an empty /tmp of its own, and cannot change the charm's files.
    assert_eq!(
        run("echo x > /tmp/x; ls /tmp; echo 'a: file' > /tmp/y; relation-set -r peer:0 --file /tmp/y
             relation-get -r peer:0 a $JUJU_UNIT_NAME")?,
        "x\nfile\n"
    );
    assert_eq!(run("ls /tmp; touch x 2>&1 || true")?, "touch: cannot touch 'x': Read-only file system\n");
    assert_eq!(run("cat /etc/passwd 2>&1 || true")?, "cat: /etc/passwd: No such file or directory\n");
    Ok(())
}

#[test]
fn a_script_reads_and_writes_its_units_storage() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let script = "script=scratch-storage-attached: write /srv/scratch/note=kept\nstart: status active";
    periapt.deploy("probe", ["--config", script, "--storage", "scratch=1,10M"])?;
    periapt.wait_for(["model"])?;
    let run = |script: &str| periapt.ok(["exec", "-u", "probe/0", script]);
    assert_eq!(run("cat /srv/scratch/note && echo more >> /srv/scratch/note")?, "kept\n");
    assert_eq!(
        run("cd /srv/scratch; cat note; mkdir -p a/b; echo x > a/b/c; ls /srv; ls *")?,
        "keptmore\nscratch\nnote\n\na:\nb\n"
    );
    assert_eq!(
        run("rm -r /srv/scratch/*; ls /srv/scratch; test -f /srv/scratch/note || echo gone")?,
        "gone\n"
    );
    Ok(())
}

#[test]
fn what_a_sandbox_has_not_is_not_found_with_code_127() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    for (script, code, error) in [
        ("curl -s http://localhost", 127, "curl: command not found: a sandbox has no programs"),
        ("systemctl status x", 127, "systemctl: command not found"),
        ("python3 -c 'print(1)'", 127, "python3: command not found"),
        ("sleep x", 1, "sleep: invalid time interval"),
        ("echo 'a", 2, "syntax error: a quote is not closed"),
        ("false", 1, ""),
    ] {
        let said = periapt.run(["exec", "-u", "probe/0", "--format", "json", "--", script])?;
        let told: Value = serde_json::from_str(&said.stdout)?;
        let results = &told["probe/0"]["results"];
        assert_eq!((said.code, &results["return-code"]), (Some(1), &json!(code)), "{script}: {said:?}");
        assert!(results["stderr"].as_str().unwrap_or_default().starts_with(error), "{script}: {results}");
        assert_eq!(told["probe/0"]["status"], "completed");
    }
    let said = periapt.run(["exec", "-u", "probe/0", "nosuch"])?;
    assert!(said.stderr.contains("with return code 127"), "{said:?}");
    Ok(())
}

#[test]
fn a_script_that_sleeps_is_waited_for_cancelled_and_held_to_its_time() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    assert_eq!(periapt.ok(["exec", "-u", "probe/0", "sleep 0.2; echo awake"])?, "awake\n");
    periapt.ok(["exec", "-u", "probe/0", "--background", "--", "leader-set a=1; sleep 3600"])?;
    periapt.json_until(&["show-task", "4"], |task| task["status"] == "running")?;
    periapt.ok(["cancel-task", "4"])?;
    periapt.json_until(&["show-task", "4"], |task| task["status"] == "aborted")?;
    assert_eq!(periapt.ok(["exec", "-u", "probe/0", "leader-get a; :"])?, "");

    periapt.ok(["model-config", "action-timeout=5s"])?;
    let said = periapt.run(["exec", "-u", "probe/0", "leader-set a=1; echo begun; sleep 3600"])?;
    assert!(said.stdout.contains("begun"), "{said:?}");
    assert!(
        said.code == Some(1) && format!("{said:?}").contains("the script took longer than 5 s"),
        "{said:?}"
    );
    periapt.ok(["model-config", "--reset", "action-timeout"])?;
    assert_eq!(periapt.ok(["exec", "-u", "probe/0", "leader-get a; :"])?, "");
    let said = periapt.run(["exec", "-u", "probe/0", "while true; do :; done"])?;
    assert!(format!("{said:?}").contains("the script used up its work"), "{said:?}");
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
