//! Interrupted commands: each process that one has started is on record, so that a verb can end it, or ends with it.

use std::{
    fs,
    path::Path,
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::ensure;
use periapt_tests::{Installation, signal};

/// The timeout of each wait.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A stage of a bootstrap, with the check that it is reached.
type Moment = (&'static str, fn(&Installation) -> bool);

fn holds(path: &Path, text: &str) -> bool {
    fs::read_to_string(path).is_ok_and(|content| content.contains(text))
}

fn exists(periapt: &Installation, path: &str) -> bool {
    periapt.path().join("data/controllers/local").join(path).exists()
}

/// The stages in their order.
const MOMENTS: [Moment; 7] = [
    ("it runs", |_| true),
    ("it has a directory", |periapt| exists(periapt, "starting.json")),
    ("the controller was started", |periapt| {
        holds(&periapt.path().join("data/controllers/local/starting.json"), "pid")
    }),
    ("the controller has data", |periapt| exists(periapt, "controller")),
    ("the agent was started", |periapt| exists(periapt, "agent.log")),
    ("the agent has data", |periapt| exists(periapt, "agent")),
    ("the client knows it", |periapt| holds(&periapt.path().join("data/client.json"), "local")),
];

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    let deadline = Instant::now() + TIMEOUT;
    while !holds()? {
        ensure!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
    Ok(())
}

/// Runs a command and sends it a signal at a stage, unless it has ended before. Returns its exit code.
fn interrupt(
    periapt: &Installation,
    arguments: &[&str],
    name: &str,
    come: impl Fn() -> anyhow::Result<bool>,
) -> anyhow::Result<Option<i32>> {
    let mut command = periapt.command(arguments);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let deadline = Instant::now() + TIMEOUT;
    while !come()? && child.try_wait()?.is_none() {
        ensure!(Instant::now() < deadline, "{arguments:?} does not come so far");
        std::thread::yield_now();
    }
    if child.try_wait()?.is_none() {
        signal(child.id(), name)?;
    }
    Ok(child.wait()?.code())
}

#[test]
fn a_bootstrap_that_is_interrupted_leaves_no_process_that_no_verb_ends() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    for (moment, has_come) in MOMENTS {
        for name in ["INT", "TERM", "HUP", "KILL"] {
            let at = format!("{name} when {moment}");
            let arguments = ["bootstrap", "local", "--agent-name", "first"];
            let code = interrupt(&periapt, &arguments, name, || Ok(has_come(&periapt)))?;
            let known = periapt.json(["controllers"])?["controllers"].get("local").is_some();
            match (name, known) {
                // A verb ends known processes.
                (_, true) => drop(periapt.ok(["kill-controller", "local", "--no-prompt"])?),
                // The signal killed the command before it handled signals, or the command undid its work.
                ("INT" | "TERM" | "HUP", false) => {
                    ensure!(code.is_none_or(|code| code > 128), "{at}: {code:?}");
                    ensure!(code.is_none() || !exists(&periapt, ""), "{at}: something is left");
                    ensure!(code.is_none() || periapt.processes()?.is_empty(), "{at}: a process is left");
                }
                _ => {}
            }
            until(&format!("{at}: processes are left"), || Ok(periapt.processes()?.is_empty()))?;
            // A second bootstrap succeeds over the remains of the first.
            periapt.ok(["bootstrap", "local", "--agent-name", "first"])?;
            periapt.ok(["kill-controller", "local", "--no-prompt"])?;
            ensure!(periapt.processes()?.is_empty(), "{at}: the next one left a process");
            ensure!(!exists(&periapt, ""), "{at}: the next one left its directory");
        }
    }
    Ok(())
}

#[test]
fn a_start_that_is_interrupted_leaves_processes_that_stop_ends() -> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    for count in [0, 1, 2] {
        for name in ["INT", "KILL"] {
            periapt.ok(["controller", "stop"])?;
            ensure!(periapt.processes()?.is_empty());
            let come = || Ok(periapt.processes()?.len() >= count);
            interrupt(&periapt, &["controller", "start"], name, come)?;
            // Unrecorded processes end; the others are known.
            let known = || -> anyhow::Result<bool> {
                let listing = periapt.json(["controllers"])?;
                let local = &listing["controllers"]["local"];
                let known: Vec<_> = ["controller-process", "agent-process"]
                    .iter()
                    .filter_map(|which| local[which].as_u64())
                    .collect();
                let of_agent = |pid: u32| {
                    let parent = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                    let parent = parent.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
                    parent.is_some_and(|parent| known.iter().any(|known| known.to_string() == parent))
                };
                let all = periapt.processes()?;
                Ok(all.iter().all(|pid| known.contains(&u64::from(*pid)) || of_agent(*pid)))
            };
            until(&format!("{name} at {count}: processes that nobody knows are left"), known)?;
            periapt.ok(["controller", "start"])?;
            periapt.ok(["agents"])?;
        }
    }
    periapt.ok(["controller", "stop"])?;
    ensure!(periapt.processes()?.is_empty());
    Ok(())
}

#[test]
fn what_a_broken_bootstrap_keeps_is_known_and_removed_by_a_verb() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    // The agent cannot make its directory, as a file has its name. By then the controller runs.
    let place = periapt.path().join("data/controllers/local");
    let arguments = ["bootstrap", "local", "--keep-broken"];
    let mut child = periapt.command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    until("the bootstrap makes no directory", || Ok(place.exists()))?;
    fs::write(place.join("agent"), "")?;
    ensure!(child.wait()?.code() == Some(1));
    let listed = periapt.json(["controllers"])?;
    ensure!(listed["controllers"]["local"]["status"] == "available", "{listed}");
    ensure!(periapt.processes()?.len() == 1, "the controller alone is left");
    periapt.ok(["kill-controller", "local", "--no-prompt"])?;
    ensure!(periapt.processes()?.is_empty() && !place.exists());
    Ok(())
}

#[test]
fn a_controller_that_cannot_be_written_down_is_ended() -> anyhow::Result<()> {
    let periapt = Installation::empty()?;
    // A directory under the name of the temporary file that becomes the client's file.
    let blocked = periapt.path().join("data/client.json.new");
    fs::create_dir_all(&blocked)?;
    let error = periapt.refused(["bootstrap", "local", "--agent-name", "first"])?;
    ensure!(error.contains("cannot write ") && error.contains("client.json"), "{error}");
    ensure!(periapt.processes()?.is_empty(), "a process is left");
    ensure!(!exists(&periapt, ""), "its directory is left");
    fs::remove_dir(blocked)?;
    periapt.ok(["bootstrap", "local", "--agent-name", "first"]).map(drop)
}
