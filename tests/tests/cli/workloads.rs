//! Workloads beside units: an agent that runs them, and hooks that speak to them.

use std::fs;

use anyhow::Context as _;
use periapt_tests::{Installation, POLL_INTERVAL, RunningProcess, free_port, signal};
use serde_json::{Value, json};

pub(crate) mod calls;
mod commands;
mod cut_short;
mod forwarding;
mod keepers;
mod languages;
mod notices;
mod operators;
mod output;
mod paused;
mod rollback;
pub(crate) mod sessions;

/// The options of an agent that runs workloads as processes of its own user.
const PLAIN: [&str; 3] = ["--workloads", "plain", "--i-know-that-nothing-is-isolated"];

/// The tries of a condition, [`POLL_INTERVAL`] apart.
const TRIES: u32 = 600;

/// An installation with one agent that runs workloads, and the charm `probe` on it.
pub(crate) struct Scene {
    pub(crate) periapt: Installation,
    pub(crate) agent: RunningProcess,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        Self::with("probe")
    }

    /// Deploys a charm of this repository under its own name, with an agent that runs workloads.
    fn with(charm: &str) -> anyhow::Result<Self> {
        Self::with_options(charm, &[])
    }

    /// Does so with further options of the agent.
    pub(crate) fn with_options(charm: &str, options: &[&str]) -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let mut agent = periapt.agent("worker", PLAIN.iter().chain(options).copied())?;
        assert_eq!(agent.first_line()?, "ready worker");
        periapt.deploy(charm, [])?;
        Ok(Self { periapt, agent })
    }

    /// Lets an action of the charm do one step of a script.
    pub(crate) fn act(&self, step: &str) -> anyhow::Result<()> {
        self.periapt.ok(["config", "probe", &format!("script=act: {step}")])?;
        self.periapt.ok(["run", "probe/0", "act"])?;
        Ok(())
    }

    /// Lets an action of the charm ask a workload, and returns what the charm logs of the answer.
    fn ask(&self, request: &str) -> anyhow::Result<String> {
        self.act(&format!("ask {request}"))?;
        let log = self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
        let line = log.lines().rev().find_map(|line| Some(line.split_once(" ask ")?.1.to_owned()));
        line.with_context(|| format!("no answer to {request} in {log}"))
    }

    pub(crate) fn ask_until(&self, request: &str, holds: impl Fn(&str) -> bool) -> anyhow::Result<String> {
        for _ in 0..60 {
            let answer = self.ask(request)?;
            if holds(&answer) {
                return Ok(answer);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        anyhow::bail!("{request} still gets {}", self.ask(request)?)
    }

    /// Returns the id of the pod's start.
    pub(crate) fn boot_id(&self) -> anyhow::Result<String> {
        let answer = self.ask_until("web GET /v1/system-info", |answer| answer.contains("boot-id"))?;
        let (_, body) = answer.split_once(": 200 ").with_context(|| answer.clone())?;
        let body: Value = serde_json::from_str(body)?;
        Ok(body.pointer("/result/boot-id").and_then(Value::as_str).context("no boot id")?.to_owned())
    }

    /// Adds a layer with a web server on a port, and starts it.
    pub(crate) fn serve(&self, port: u16) -> anyhow::Result<()> {
        let directory = self.periapt.path().join("pages");
        fs::create_dir_all(&directory)?;
        fs::write(directory.join("page.txt"), "a page of the workload")?;
        let command =
            format!("python3 -m http.server {port} --bind 127.0.0.1 --directory {}", directory.display());
        let layer = format!(
            "services: {{web: {{override: replace, command: {command}, startup: enabled, backoff-delay: 100ms}}}}"
        );
        let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
        let answer = self.ask(&format!("web POST /v1/layers {add}"))?;
        assert!(answer.contains(": 200 "), "{answer}");
        let answer = self.ask(&format!("web POST /v1/services {}", json!({"action": "replan"})))?;
        assert!(answer.contains(": 202 "), "{answer}");
        // A service that ends in its first second has not started, and is not started again.
        let change = answer.split_once("\"change\":\"").and_then(|(_, rest)| rest.split('"').next());
        let change = change.with_context(|| answer.clone())?;
        let waited = self.ask(&format!("web GET /v1/changes/{change}/wait?timeout=30s"))?;
        assert!(waited.contains(": 200 "), "{waited}");
        Ok(())
    }
}

/// Returns the processes whose command line has these words.
pub(crate) fn processes(words: &[&str]) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if words.iter().all(|word| line.contains(word)) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Returns the children of a process whose command line has these words.
pub(crate) fn children(parent: u32, words: &[&str]) -> anyhow::Result<Vec<u32>> {
    let mut found = processes(words)?;
    found.retain(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{parent}"))
    });
    Ok(found)
}

pub(crate) fn until(what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
    for _ in 0..TRIES {
        if holds()? {
            return Ok(());
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    anyhow::bail!("still not so: {what}")
}

#[test]
fn a_charm_runs_a_server_that_comes_back_whatever_is_killed_and_ends_with_the_unit() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let (first, port) = (scene.boot_id()?, free_port()?);
    let server = format!("http.server {port}");
    let pods = || children(scene.agent.id(), &["agent pod --keeper"]);
    let page = format!("{port} GET /page.txt");
    let is_page = |answer: &str| answer.contains("200 a page of the workload");
    assert!(scene.ask(&page)?.contains("nobody listens on port"), "nothing is served yet");
    scene.serve(port)?;
    scene.ask_until(&page, is_page)?;
    let pod = pods()?;
    assert_eq!(pod.len(), 1, "one unit with one container");

    // The server dies: the pod starts it again.
    let servers = processes(&[&server])?;
    assert_eq!(servers.len(), 1);
    signal(servers[0], "KILL")?;
    scene.ask_until(&page, is_page)?;
    assert_ne!(processes(&[&server])?, servers);

    // The runner dies: nothing happens to the pod, and hooks reach it as before.
    let runners = children(scene.agent.id(), &["agent runner"])?;
    signal(*runners.first().context("no runner")?, "KILL")?;
    scene.ask_until(&page, is_page)?;
    assert_eq!((pods()?, scene.boot_id()?), (pod.clone(), first.clone()));

    // The pod dies, and its processes with it. Another one begins, with nothing of what the first was told.
    signal(pod[0], "KILL")?;
    until("the server has ended with its pod", || Ok(processes(&[&server])?.is_empty()))?;
    until("another pod has begun", || Ok(pods()?.len() == 1 && pods()? != pod))?;
    assert_ne!(scene.boot_id()?, first);
    scene.serve(port)?;
    scene.ask_until(&page, is_page)?;

    // The unit goes, and so does all that it ran.
    scene.periapt.ok(["remove-application", "probe", "--no-prompt"])?;
    until("the pod has ended with its unit", || Ok(pods()?.is_empty()))?;
    until("so has the server", || Ok(processes(&[&server])?.is_empty()))?;
    Ok(())
}

/// Runs an action, and returns its results.
fn results(periapt: &Installation, arguments: &[&str]) -> anyhow::Result<Value> {
    let task = periapt.json([&["run", "python-workload/0"], arguments].concat())?;
    let task = task.as_object().and_then(|tasks| tasks.values().next()).cloned().context("a task")?;
    task.get("results").cloned().with_context(|| task.to_string())
}

#[test]
fn python_charms_on_ops_drive_their_container_with_an_unchanged_client() -> anyhow::Result<()> {
    let scene = Scene::with("python-workload")?;
    let (periapt, port) = (&scene.periapt, free_port()?);
    let directory = periapt.path().join("pages");
    let options =
        [format!("directory={}", directory.display()), format!("port={port}"), "text=one".to_owned()];
    periapt.ok([&["config".to_owned(), "python-workload".to_owned()][..], &options].concat())?;
    let serves = |text: &str| {
        let message = format!("serving {text}");
        periapt.ok_until(&["status"], |status| status.contains(&message))
    };
    serves("one")?;
    // A hook before it may have found the container ready.
    periapt.ok_until(&["hooks", "python-workload/0"], |hooks| hooks.contains("web-pebble-ready"))?;

    // Files, services, commands with their exit codes.
    let seen = results(periapt, &["inspect"])?;
    assert_eq!((&seen["files"], &seen["content"]), (&json!("page.txt"), &json!("one")), "{seen}");
    assert_eq!((&seen["running"], &seen["failed"]), (&json!("True"), &json!("3")), "{seen}");
    // Websockets in both directions at a time, with little and with much.
    let shouted = results(periapt, &["shout", "text=hello"])?;
    assert_eq!((&shouted["begins"], &shouted["errors"]), (&json!("HELLO"), &json!("done\n")), "{shouted}");
    let shouted = results(periapt, &["shout", "text=abcdefghij", "times=300000"])?;
    assert_eq!(shouted["length"], json!("3000000"), "{shouted}");

    // HTTP to the workload itself, and a change that reaches it.
    let page = || Ok::<_, anyhow::Error>(results(periapt, &["page"])?["page"].clone());
    assert_eq!(page()?, "one");
    periapt.ok(["config", "python-workload", "text=two"])?;
    serves("two")?;
    assert_eq!(page()?, "two");

    // The pod dies: the charm is told of the next one, and sets it up anew.
    let pods = children(scene.agent.id(), &["agent pod --keeper"])?;
    signal(*pods.first().context("no pod")?, "KILL")?;
    periapt
        .ok_until(&["hooks", "python-workload/0"], |hooks| hooks.matches("web-pebble-ready").count() == 2)?;
    until("the page is back", || Ok(page().is_ok_and(|page| page == "two")))?;
    Ok(())
}

#[test]
fn an_agent_that_runs_no_workloads_says_so_to_hooks_and_a_driver_without_isolation_is_refused()
-> anyhow::Result<()> {
    let periapt = Installation::bootstrapped()?;
    let url =
        periapt.json(["controllers"])?["controllers"]["local"]["url"].as_str().context("a URL")?.to_owned();
    let run = ["agent", "run", "--controller", &url, "--name", "x", "--data", "x", "--workloads"];
    let error = periapt.refused([&run[..], &["plain"]].concat())?;
    assert!(error.contains("the driver plain isolates nothing"), "{error}");
    let done = periapt.run([&run[..], &["jail"]].concat())?;
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("there is no driver \"jail\""), "{done:?}");

    periapt.deploy("probe", [])?;
    periapt.ok(["config", "probe", "script=act: ask web GET /v1/health"])?;
    periapt.ok(["run", "probe/0", "act"])?;
    let log = periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])?;
    assert!(log.contains("this agent runs no workloads"), "{log}");
    Ok(())
}
