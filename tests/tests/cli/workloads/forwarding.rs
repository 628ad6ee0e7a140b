//! Log targets: lines of one unit's workload that another unit's workload gets.

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, packed_parts};
use serde_json::json;

use super::until;

/// The port of the workload of each unit.
const PORT: u16 = 8080;

/// Lets an action of `probe/0` ask a workload, and returns what the unit logs of the answer.
fn ask(periapt: &Installation, request: &str) -> anyhow::Result<String> {
    periapt.ok(["config", "probe", &format!("script=act: ask {request}")])?;
    periapt.ok(["run", "probe/0", "act"])?;
    let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
    let (_, answer) = log.rsplit_once(" ask ").with_context(|| format!("no answer to {request} in {log}"))?;
    Ok(answer.to_owned())
}

#[test]
fn lines_of_a_workload_reach_the_server_of_a_unit_once_it_is_related_and_not_before() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let log = periapt.path().join("worker.log");
    let mut agent = periapt.agent_logged("worker", &log, ["--workloads", "wasm"])?;
    ensure!(agent.first_line()? == "ready worker");
    // It keeps what it is sent by POST.
    let parts = [("notes.wasm", "web-notes-server")];
    let notes = packed_parts("web-notes", "taking", periapt.path(), &parts, str::to_owned)?;
    let parts = [("server.wasm", "hostile-workload")];
    let server = format!("x-periapt: {{workloads: {{server: {{component: server.wasm, http: {PORT}}}}}}}\n");
    let probe = packed_parts("probe", "saying", periapt.path(), &parts, |text| {
        let text = text.replace("requires:\n", "requires:\n  notes:\n    interface: notes\n");
        format!("{text}{server}")
    })?;
    for charm in [&notes, &probe] {
        periapt.ok(["deploy", charm.to_str().context("a path")?])?;
    }
    let list = || Ok::<_, anyhow::Error>(periapt.json(["run", "web-notes/0", "list"])?.to_string());
    until("the server of notes answers", || Ok(list().is_ok_and(|notes| notes.contains("completed"))))?;

    let target = json!({
        "override": "replace",
        "type": "loki",
        "location": format!("http://web-notes-0:{PORT}/"),
        "services": ["all"],
        "labels": {"from": "probe"},
    });
    let layer = json!({"log-targets": {"notes": target}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "log", "format": "yaml", "layer": layer});
    let add = format!("server POST /v1/layers {add}");
    until("the layer is taken", || Ok(ask(&periapt, &add)?.contains(": 200 ")))?;
    let says = format!("{PORT} GET /log");
    until("the workload says a line", || Ok(ask(&periapt, &says)?.contains("logged")))?;
    let failed = |warnings: &str| warnings.contains("log target") && warnings.contains("cannot be forwarded");
    until("the target fails", || Ok(failed(&ask(&periapt, "server GET /v1/warnings?select=all")?)))?;
    ensure!(!list()?.contains("streams"), "they are not related");

    // The lines have waited.
    periapt.ok(["integrate", "probe:notes", "web-notes:notes"])?;
    until("the lines are taken", || Ok(list()?.contains("GET /log")))?;
    let notes = list()?;
    for part in ["from", "probe", "pebble_service", "server", "an error"] {
        ensure!(notes.contains(part), "{part}: {notes}");
    }
    let told = std::fs::read_to_string(&log)?;
    ensure!(told.contains("a log target does not get its lines"), "{told}");
    Ok(())
}
