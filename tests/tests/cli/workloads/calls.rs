//! The calls of ops' client of Pebble, made by a charm in its sandbox: `tests/guests/python-pebble` has the probes.

use std::{collections::BTreeSet, path::Path};

use anyhow::Context as _;
use periapt_tests::Installation;
use serde_json::Value;

use super::Scene;

/// The probes that need nothing of a workload but the programs of busybox, by their groups. A probe that the charm lacks
/// fails the test, as one that fails does.
const PROBES: &[(&str, &[&str])] = &[
    (
        "files",
        &[
            "push-and-pull-text",
            "push-and-pull-bytes",
            "push-and-pull-encoded",
            "push-from-files",
            "push-and-pull-large",
            "push-makes-directories",
            "push-with-permissions",
            "push-where-no-file-can-be",
            "pull-what-is-no-file",
            "paths-of-pathlib",
            "list-files",
            "list-files-by-pattern",
            "list-a-directory-itself",
            "list-what-is-not-there",
            "list-a-link",
            "exists-and-isdir",
            "make-dir",
            "make-dir-with-permissions",
            "make-dir-where-none-can-be",
            "remove-path",
            "what-is-not-permitted",
        ],
    ),
    ("trees", &["push-path", "pull-path", "paths-that-are-not-there"]),
    (
        "services",
        &[
            "add-layer-and-get-plan",
            "autostart",
            "start-and-stop",
            "restart",
            "replan",
            "get-services",
            "send-signal",
            "start-one-that-fails",
            "wait-change",
            "wait-change-in-vain",
            "log-targets",
        ],
    ),
    (
        "commands",
        &[
            "wait",
            "wait-output",
            "wait-output-of-a-failure",
            "input-of-text-and-bytes",
            "input-of-objects-like-files",
            "input-of-open-files",
            "much-input-and-output",
            "combined-errors",
            "output-to-files",
            "dialogue",
            "input-from-a-thread",
            "lines-as-they-come",
            "timeout",
            "timeout-while-another-process-has-the-output",
            "working-dir",
            "environment",
            "service-context",
            "send-signal",
            "a-program-that-is-missing",
            "many-after-each-other",
            "several-at-a-time",
            "bytes-of-all-values",
        ],
    ),
    (
        "checks",
        &["get-checks", "one-that-fails", "one-that-recovers", "start-and-stop", "replan-starts-them"],
    ),
    (
        "notices",
        &[
            "notify-and-get-notice",
            "get-notices",
            "repeat-after",
            "notices-that-there-are-not",
            "identities",
            "system-info",
        ],
    ),
    (
        "errors",
        &[
            "bad-layers",
            "a-label-that-is-taken",
            "unknown-names",
            "no-container-of-this-name",
            "more-streams-than-a-hook-may-have",
        ],
    ),
];

/// The probes that need a container with a user and a group `worker`.
const PROBES_OF_USERS: &[&str] = &["files-of-users", "commands-of-users", "services-of-users"];

/// The longest time that a group of probes may take.
const WAIT: &str = "10m";

/// Runs the probes of a group in a directory of the container, and compares the results with what is expected.
fn run(periapt: &Installation, group: &str, names: &[&str], directory: &str) -> anyhow::Result<()> {
    let (of, directory) = (format!("of={group}"), format!("directory={directory}"));
    let tasks = periapt.json(["run", "python-pebble/0", "probe", &of, &directory, "--wait", WAIT])?;
    let task = tasks.as_object().and_then(|tasks| tasks.values().next()).context("a task")?;
    let results = task.get("results").and_then(Value::as_object).with_context(|| task.to_string())?;
    let expected: BTreeSet<String> = names.iter().map(|name| format!("{group}-{name}")).collect();
    let mut failed = Vec::new();
    for name in &expected {
        match results.get(name).and_then(Value::as_str) {
            Some("ok") => {}
            Some(error) => failed.push(format!("{name}: {error}")),
            None => failed.push(format!("{name}: the charm has no such probe")),
        }
    }
    let unknown = results.keys().filter(|name| name.starts_with(group) && !expected.contains(*name));
    failed.extend(unknown.map(|name| format!("{name}: a probe that this test does not expect")));
    assert!(failed.is_empty(), "{} of {} probes:\n{}", failed.len(), expected.len(), failed.join("\n"));
    Ok(())
}

/// Runs the probes of all groups once Pebble is ready.
pub(crate) fn run_probes(periapt: &Installation, directory: &Path) -> anyhow::Result<()> {
    let directory = directory.to_str().context("a path")?;
    // The agent compiles the charm before its first hook, which takes a while beside other tests.
    for hook in ["install", "web-pebble-ready"] {
        periapt.ok_until(&["hooks", "python-pebble/0"], |hooks| hooks.contains(hook))?;
    }
    for (group, names) in PROBES {
        run(periapt, group, names, directory)?;
    }
    Ok(())
}

/// Runs the probes of users.
pub(crate) fn run_probes_of_users(periapt: &Installation, directory: &Path) -> anyhow::Result<()> {
    run(periapt, "users", PROBES_OF_USERS, directory.to_str().context("a path")?)
}

#[test]
fn each_call_of_ops_reaches_the_workload_from_within_the_sandbox() -> anyhow::Result<()> {
    let scene = Scene::with("python-pebble")?;
    run_probes(&scene.periapt, &scene.periapt.path().join("probes"))
}
