//! A WebAssembly workload that keeps what it is given in its unit's storage, and another one that asks it.

use std::fs;

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, packed_parts, signal};
use serde_json::Value;

use crate::workloads::{children, until};

/// Runs an action of a unit, and returns one of its results.
fn act(periapt: &Installation, words: &[&str], result: &str) -> anyhow::Result<String> {
    let task = periapt.json([&["run"], words].concat())?;
    let task = task.as_object().and_then(|tasks| tasks.values().next()).context("a task")?;
    let found = task.pointer(&format!("/results/{result}")).and_then(Value::as_str);
    Ok(found.with_context(|| task.to_string())?.to_owned())
}

#[test]
fn notes_are_in_storage_and_on_the_pages_of_related_units_whatever_is_killed() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    periapt.ok(["bootstrap", "local", "--no-agent"])?;
    periapt.ok(["add-model", "test"])?;
    let log = periapt.path().join("worker.log");
    let mut agent = periapt.agent_logged("worker", &log, ["--workloads", "wasm"])?;
    ensure!(agent.first_line()? == "ready worker");
    for (charm, part) in [("web-notes", "notes.wasm"), ("web-page", "web.wasm")] {
        let parts = [(part, &*format!("{charm}-server"))];
        let archive = packed_parts(charm, "first", periapt.path(), &parts, str::to_owned)?;
        periapt.ok(["deploy", archive.to_str().context("a path")?])?;
    }
    periapt.ok(["integrate", "web-notes", "web-page"])?;
    periapt.ok_until(&["status"], |status| status.contains("notes: 0"))?;
    periapt.ok(["run", "web-notes/0", "add", "text=the first note"])?;
    let shows = |text: &str| {
        until(&format!("the page has {text:?}"), || {
            Ok(act(&periapt, &["web-page/0", "page"], "page").is_ok_and(|page| page.contains(text)))
        })
    };
    shows("the first note")?;

    // Whatever of it dies, what it wrote is there when it is back.
    for pod in children(agent.id(), &["agent pod --keeper --driver wasm"])? {
        // The next pod waits for the end of its workload, which holds the lock as well.
        let lock = fs::read_link(format!("/proc/{pod}/fd/1"))?;
        let workloads = children(pod, &["agent workload"])?;
        ensure!(!workloads.is_empty(), "a pod without a workload");
        for workload in workloads {
            let mut open = fs::read_dir(format!("/proc/{workload}/fd"))?.flatten();
            let is_held = open.any(|entry| fs::read_link(entry.path()).is_ok_and(|path| path == lock));
            ensure!(is_held, "workload {workload} does not hold {lock:?}");
        }
        signal(pod, "KILL")?;
    }
    let list = || act(&periapt, &["web-notes/0", "list"], "notes");
    until("the notes are back", || Ok(list().is_ok_and(|notes| notes.contains("the first note"))))?;
    periapt.ok(["run", "web-notes/0", "add", "text=the second"])?;
    assert_eq!(list()?.trim_end(), "the second\nthe first note");
    shows("the second\nthe first note")?;

    let long = format!("text={}", "x".repeat(5_000));
    let refused = periapt.json(["run", "web-notes/0", "add", &long]);
    ensure!(refused.is_err() || refused.is_ok_and(|task| task.to_string().contains("5000 bytes")));

    // Units that are not related any more are not asked.
    periapt.ok(["remove-relation", "web-notes", "web-page"])?;
    until("the page has no notes", || {
        let page = act(&periapt, &["web-page/0", "page"], "page");
        Ok(page.is_ok_and(|page| !page.contains("the second")))
    })?;
    Ok(())
}
