//! Refreshes that went wrong, and their way back.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_host_api::Digest;
use periapt_tests::{Installation, free_port, packed_changed, packed_parts};
use serde_json::Value;

use super::{Scene, processes, until};

/// Returns the unit of an application, as `status` shows it.
fn unit<'a>(status: &'a Value, application: &str) -> &'a Value {
    let path = format!("/applications/{application}/units/{application}~10");
    status.pointer(&path).unwrap_or(&Value::Null)
}

/// Returns the charm of an application, as `status` shows it.
fn charm<'a>(status: &'a Value, application: &str) -> Option<&'a str> {
    status.pointer(&format!("/applications/{application}/charm")).and_then(Value::as_str)
}

#[test]
fn a_workload_that_ends_again_and_again_is_replaced_by_the_one_before_and_storage_stays() -> anyhow::Result<()>
{
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let mut agent = periapt.agent("worker", ["--workloads", "wasm"])?;
    ensure!(agent.first_line()? == "ready worker");
    let good = [("notes.wasm", "web-notes-server")];
    let good = packed_parts("web-notes", "good", periapt.path(), &good, str::to_owned)?;
    periapt.ok(["deploy", good.to_str().context("a path")?])?;
    periapt.ok_until(&["status"], |status| status.contains("notes: 0"))?;
    periapt.ok(["run", "web-notes/0", "add", "text=a note to keep"])?;

    // The next charm's workload is a command that fails.
    let bad = [("notes.wasm", "hostile-workload")];
    let without_port = |text: &str| text.replace("      http: 8080\n", "");
    let bad = packed_parts("web-notes", "bad", periapt.path(), &bad, without_port)?;
    periapt.ok(["refresh", "web-notes", "--path", bad.to_str().context("a path")?])?;
    let is_down = |status: &Value| {
        let problems = unit(status, "web-notes").get("workload-problems").and_then(Value::as_array);
        let is_of_service = |problem: &Value| {
            problem.as_str().is_some_and(|text| text.starts_with("service notes of container notes ended"))
        };
        problems.is_some_and(|problems| problems.iter().any(is_of_service))
    };
    let status = periapt.json_until(&["status"], is_down)?;
    assert_eq!(charm(&status, "web-notes"), Some("local:web-notes-1"));
    let shown = periapt.json(["show-application", "web-notes"])?;
    assert_eq!(shown["web-notes"]["former-charms"][0]["charm-rev"], 0, "{shown}");
    let unknown = periapt.refused(["refresh", "web-notes", "--revision", "7"])?;
    ensure!(unknown.contains("no charm of revision 7 that is kept; kept: 0, 1"), "{unknown}");

    periapt.ok(["refresh", "web-notes", "--revision", "0"])?;
    until("the first server has its notes again", || {
        let task = periapt.run(["run", "web-notes/0", "list", "--format", "json"])?;
        Ok(task.stdout.contains("a note to keep"))
    })?;
    let has_settled = |status: &Value| {
        let unit = unit(status, "web-notes");
        charm(status, "web-notes") == Some("local:web-notes-0")
            && unit.get("upgrading-from").is_none()
            && unit.get("workload-problems").is_none()
    };
    periapt.json_until(&["status"], has_settled)?;
    Ok(())
}

#[test]
fn a_failed_upgrade_is_undone_with_its_resources_while_the_workload_runs_on() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    for content in ["one", "two"] {
        fs::write(periapt.path().join(format!("{content}.txt")), content)?;
    }
    periapt.ok(["attach-resource", "probe", "data=one.txt"])?;
    periapt.wait_for(["model"])?;
    let port = free_port()?;
    scene.serve(port)?;
    let server = || processes(&[&format!("http.server {port}")]);
    let before = server()?;
    ensure!(before.len() == 1, "{before:?}");

    // One command brings a charm and a resource, and its hook fails.
    let next = packed_changed("probe", "next", periapt.path(), |text| format!("# next\n{text}"))?;
    let next = next.to_str().context("a path")?;
    let fails = "script=upgrade-charm: fail it broke";
    periapt.ok(["refresh", "probe", "--path", next, "--resource", "data=two.txt", "--config", fails])?;
    let has_failed = |status: &Value| {
        let message = unit(status, "probe").pointer("/workload-status/message");
        message.is_some_and(|message| message == "hook failed: \"upgrade-charm\"")
    };
    let status = periapt.json_until(&["status"], has_failed)?;
    assert_eq!(charm(&status, "probe"), Some("local:probe-1"));
    let data =
        || -> anyhow::Result<Value> { Ok(periapt.json(["resources", "probe"])?["resources"][0].clone()) };
    let attached = data()?;
    assert_eq!(
        (&attached["revision"], &attached["former-revisions"]),
        (&"2".into(), &serde_json::json!([1]))
    );
    assert_eq!(server()?, before, "the workload runs on");

    // One command goes back to both.
    let refused = periapt.refused(["refresh", "probe", "--revision", "0", "--resource", "data=9"])?;
    ensure!(refused.contains("no revision 9 that is kept; kept: 1, 2"), "{refused}");
    let works = "script=start: status active";
    periapt.ok([
        "refresh",
        "probe",
        "--revision",
        "0",
        "--resource",
        "data=1",
        "--config",
        works,
        "--force-units",
    ])?;
    let is_back = |status: &Value| {
        let unit = unit(status, "probe");
        charm(status, "probe") == Some("local:probe-0")
            && unit.pointer("/workload-status/current").is_some_and(|current| current != "error")
            && unit.get("upgrading-from").is_none()
    };
    periapt.json_until(&["status"], is_back)?;
    periapt.wait_for(["model"])?;
    let attached = data()?;
    assert_eq!(attached["fingerprint"], Digest::of(b"one").to_string());
    assert_eq!(attached["revision"], "3", "an earlier content is a revision of its own");
    assert_eq!(server()?, before, "it is still the workload that ran before");

    // Contents alone, by their revision.
    let attached = periapt.run(["attach-resource", "probe", "data=2"])?;
    ensure!(attached.stderr.contains("as revision 4"), "{attached:?}");
    assert_eq!(data()?["fingerprint"], Digest::of(b"two").to_string());
    periapt.ok(["refresh", "probe", "--resource", "data=1"])?;
    assert_eq!(data()?["fingerprint"], Digest::of(b"one").to_string());
    Ok(())
}
