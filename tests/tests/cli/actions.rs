//! Actions of a real charm in the sandbox, run, followed and stopped by the binary.

use periapt_tests::Installation;
use serde_json::{Value, json};

/// Creates settled units of the probe; `script` sets the effects of its actions.
fn probes(units: &str, script: &str) -> anyhow::Result<Installation> {
    let periapt = Installation::bootstrapped()?;
    let script = format!("script={script}");
    periapt.deploy("probe", ["-n", units, "--config", &script])?;
    periapt.wait_for(["application", "probe", "--units", units, "--status", "unknown"])?;
    Ok(periapt)
}

/// Returns the task of a unit from the output of `run --format json`.
fn of(shown: &Value, unit: &str) -> Value {
    shown[unit].clone()
}

#[test]
fn an_action_is_listed_run_and_shown_in_jujus_shape() -> anyhow::Result<()> {
    let periapt = probes("2", "")?;
    let listed = periapt.json(["actions", "probe"])?;
    assert_eq!(listed["greet"], "Greets, through the typed door.");
    let schema = periapt.json(["actions", "probe", "--schema"])?;
    assert_eq!(schema["greet"]["properties"]["times"]["default"], 1);
    assert_eq!(schema["greet"]["additionalProperties"], false);

    let shown = periapt.json(["run", "probe/0", "greet", "whom=you", "times=2"])?;
    let task = of(&shown, "probe/0");
    assert_eq!(
        (&task["id"], &task["status"], &task["unit"]),
        (&json!("2"), &json!("completed"), &json!("probe/0"))
    );
    assert_eq!(
        task["results"],
        json!({"greeting": {"text": "hello you", "times": "2"}, "return-code": 0, "stdout": "done\n"})
    );
    let log = task["log"][0].as_str().unwrap();
    assert!(log.ends_with(" +0000 UTC greeting you"), "{log}");
    for moment in ["enqueued", "started", "completed"] {
        assert!(task["timing"][moment].as_str().unwrap().ends_with(" +0000 UTC"), "{task}");
    }

    // Several units, the leader included; plain output, with messages as they arrive.
    let done = periapt.run(["run", "probe/0", "probe/1", "greet"])?;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(done.stdout.matches("text: hello world").count(), 2, "{}", done.stdout);
    assert!(done.stdout.starts_with("probe/0:\n"), "{}", done.stdout);
    assert_eq!(done.stderr.matches("greeting world").count(), 2, "{}", done.stderr);
    assert!(
        done.stderr.contains("Running operation 3 with 2 tasks\n  - task 4 on unit-probe-0\n"),
        "{}",
        done.stderr
    );
    // Options may be anywhere among the words.
    let shown = periapt.json(["run", "probe/0", "--utc", "greet", "--string-args", "whom=1e3"])?;
    assert_eq!(of(&shown, "probe/0")["results"]["greeting"]["text"], "hello 1e3", "{shown}");
    let leader = periapt.json(["run", "probe/leader", "greet"])?;
    assert_eq!(leader.as_object().unwrap().len(), 1);

    let operation = periapt.json(["show-operation", "1"])?;
    assert_eq!(operation["summary"], "greet run on unit-probe-0");
    assert_eq!(operation["action"]["parameters"], json!({"times": 2, "whom": "you"}));
    assert_eq!(operation["tasks"]["2"]["host"], "probe/0");
    assert_eq!(periapt.json(["show-task", "2"])?["results"]["greeting"]["text"], "hello you");
    let listed = periapt.json(["operations", "--actions", "greet", "--units", "probe/1"])?;
    assert_eq!(listed["3"]["status"], "completed");
    assert!(periapt.json(["operations", "--limit", "1"])?.get("1").is_none(), "the newest come first");
    Ok(())
}

#[test]
fn a_return_code_is_exit_code_1_and_a_failure_that_is_said_is_a_status() -> anyhow::Result<()> {
    let periapt = probes(
        "1",
        "act: tool action-set part=1\nact: complain oh no\nact: fail out of luck\nbeside: unhandled",
    )?;
    let done = periapt.run(["run", "probe/0", "act", "--format", "json"])?;
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(
        done.stderr.contains("the following task failed:\n - id \"2\" with return code 1"),
        "{}",
        done.stderr
    );
    let task = of(&serde_json::from_str(&done.stdout)?, "probe/0");
    assert_eq!((&task["status"], &task["message"]), (&json!("failed"), &json!("out of luck")));
    assert_eq!(task["results"], json!({"part": "1", "return-code": 1, "stderr": "oh no\n"}));

    // The typed interface reports a failure and returns normally: as in Juju, the task's status is `failed` and there
    // is no error.
    let done = periapt.run(["run", "probe/0", "greet", "times=0", "--format", "json"])?;
    let task = of(&serde_json::from_str(&done.stdout)?, "probe/0");
    assert_eq!(
        (done.code, &task["status"], &task["message"], &task["results"]["return-code"]),
        (Some(0), &json!("failed"), &json!("nobody was greeted"), &json!(0))
    );
    assert!(!done.stderr.contains("nobody was greeted"), "{}", done.stderr);

    let done = periapt.run(["run", "probe/0", "beside", "--format", "json"])?;
    let task = of(&serde_json::from_str(&done.stdout)?, "probe/0");
    assert_eq!(
        (done.code, &task["status"], &task["message"]),
        (Some(1), &json!("failed"), &json!("action not implemented on unit \"probe/0\""))
    );
    // None of the actions puts the unit in error.
    periapt.wait_for(["unit", "probe/0", "--status", "unknown"])?;
    Ok(())
}

#[test]
fn what_cannot_be_scheduled_says_why_as_juju_does() -> anyhow::Result<()> {
    let periapt = probes("1", "")?;
    for (arguments, reason) in [
        (
            ["run", "probe/0", "greet", "times=-1"],
            "validation failed: (root).times : must be 0 at least, given -1",
        ),
        (
            ["run", "probe/0", "greet", "many=1"],
            "validation failed: (root) : additional property \"many\" is not allowed",
        ),
        (["run", "probe/0", "explode", "a=1"], "action \"explode\" not defined on unit \"probe/0\""),
        (["run", "probe/9", "greet", "times=1"], "unit \"probe/9\" not found"),
    ] {
        let done = periapt.run(arguments)?;
        assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{}", done.stderr);
        assert!(done.stderr.contains("failed to schedule any tasks:"), "{}", done.stderr);
        assert!(done.stderr.contains(reason), "{}", done.stderr);
    }
    for (arguments, error) in [
        (&["run", "probe/0"][..], "ERROR no action specified"),
        (&["run", "probe/0", "--string-args"], "ERROR no action specified"),
        (&["run", "greet"], "ERROR no unit specified"),
    ] {
        let done = periapt.run(arguments)?;
        assert!(done.code == Some(2) && done.stderr.starts_with(error), "{done:?}");
    }
    assert!(periapt.refused(["show-task", "77"])?.contains("task \"77\" not found"));
    assert!(periapt.refused(["show-operation", "77"])?.contains("operation \"77\" not found"));
    Ok(())
}

#[test]
fn n06_a_running_action_is_stopped_at_once_and_the_next_one_runs() -> anyhow::Result<()> {
    let periapt =
        probes("1", "act: emit begun\nact: open-port 80/tcp\nact: tool action-log spinning\nact: loop")?;
    let scheduled = periapt.run(["run", "probe/0", "act", "--background"])?;
    assert!(scheduled.stderr.contains("Scheduled operation 1 with task 2"), "{}", scheduled.stderr);
    // A wait that ends too early shows the present results, and fails.
    let late = periapt.run(["run", "probe/0", "greet", "--wait", "100ms", "--format", "json"])?;
    assert_eq!(late.code, Some(1));
    assert!(late.stderr.contains("timed out waiting for results from: unit probe/0"), "{}", late.stderr);
    assert_eq!(of(&serde_json::from_str(&late.stdout)?, "probe/0")["status"], "pending");
    // The message arrives while the action runs.
    let running = periapt.json_until(&["show-task", "2"], |task| !task["log"].is_null())?;
    assert_eq!(running["status"], "running");
    let cancelled = periapt.run(["cancel-task", "2"])?;
    assert!(cancelled.stderr.contains("task 2: aborting"), "{}", cancelled.stderr);
    let stopped = periapt.json_until(&["show-task", "2"], |task| task["status"] == "aborted")?;
    assert_eq!(
        (&stopped["message"], &stopped["results"]["stdout"]),
        (&json!("action cancelled"), &json!("begun\n"))
    );
    // The next task ran, and the stopped one had no effect.
    let next = periapt.json(["show-task", "4", "--wait", "1m"])?;
    assert_eq!(next["status"], "completed");
    assert_eq!(periapt.json(["show-unit", "probe/0"])?["probe/0"]["opened-ports"], json!([]));
    assert!(periapt.refused(["cancel-task", "2"])?.contains("is aborted already"));
    Ok(())
}
