//! Log targets: lines of a container that the workload of another unit gets.

use anyhow::{Context as _, ensure};
use periapt_tests::{packed_changed, packed_parts};
use serde_json::json;

use super::Scene;
use crate::workloads::until;

#[test]
fn lines_of_a_container_reach_the_server_of_a_related_unit() -> anyhow::Result<()> {
    let Some(scene) = Scene::with_drivers("namespaces,wasm")? else { return Ok(()) };
    let periapt = &scene.periapt;
    // It keeps what it is sent by POST.
    let parts = [("notes.wasm", "web-notes-server")];
    let notes = packed_parts("web-notes", "taking", periapt.path(), &parts, str::to_owned)?;
    let probe = packed_changed("probe", "saying", periapt.path(), |text| {
        text.replace("requires:\n", "requires:\n  notes:\n    interface: notes\n")
    })?;
    periapt.ok(["deploy", notes.to_str().context("a path")?])?;
    periapt.ok(["deploy", probe.to_str().context("a path")?, "--resource", "image=one.tar"])?;
    periapt.ok(["integrate", "probe:notes", "web-notes:notes"])?;
    let list = || Ok::<_, anyhow::Error>(periapt.json(["run", "web-notes/0", "list"])?.to_string());
    until("the server of notes answers", || Ok(list().is_ok_and(|notes| notes.contains("completed"))))?;
    scene.boot_id("")?;

    let says = "sh -c 'echo the image has $A; exec sleep 1000'";
    let service = json!({"override": "replace", "command": says, "startup": "enabled"});
    let target = json!({
        "override": "replace",
        "type": "loki",
        "location": "http://web-notes-0:8080/",
        "services": ["all"],
        "labels": {"from": "probe"},
    });
    let layer = json!({"services": {"says": service}, "log-targets": {"notes": target}}).to_string();
    let add = json!({"action": "add", "combine": true, "label": "log", "format": "yaml", "layer": layer});
    let answer = scene.ask(&format!("web POST /v1/layers {add}"))?;
    ensure!(answer.contains(": 200 "), "{answer}");
    let answer = scene.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
    ensure!(answer.contains(": 202 "), "{answer}");
    until("the line is taken", || Ok(list()?.contains("the image has 1")))?;
    let notes = list()?;
    for part in ["from", "probe", "pebble_service", "says"] {
        ensure!(notes.contains(part), "{part}: {notes}");
    }
    Ok(())
}
