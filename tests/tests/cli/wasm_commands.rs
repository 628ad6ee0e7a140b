//! An ordinary program with `main` as a WebAssembly workload: a command beside a unit.

use anyhow::{Context as _, ensure};
use periapt_tests::{Done, Installation, RunningProcess, packed_parts, signal};
use serde_json::{Value, json};

use crate::workloads::{children, until};

/// The port of the server that the command asks.
const PORT: u16 = 8080;

/// The answer of the server.
const ANSWERED: &str = "404 no such mode";

/// The word of a command whose call the agent has refused.
const REFUSED: &str = "HttpRequestDenied";

/// An agent that runs WebAssembly workloads, with the command `job` beside `probe/0` and a server beside `db/0`.
struct Scene {
    periapt: Installation,
    agent: RunningProcess,
}

impl Scene {
    fn new() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let mut agent = periapt.agent("worker", ["--workloads", "wasm"])?;
        ensure!(agent.first_line()? == "ready worker");
        let scene = Self { periapt, agent };
        scene.deploy("probe", ("job.wasm", "probe-job"), "job: {component: job.wasm}")?;
        let server = format!("server: {{component: server.wasm, http: {PORT}}}");
        scene.deploy("db", ("server.wasm", "hostile-workload"), &server)?;
        Ok(scene)
    }

    /// Deploys `probe` under a name, with a component as its workload.
    fn deploy(&self, name: &str, component: (&str, &str), workload: &str) -> anyhow::Result<()> {
        let declared = format!("x-periapt: {{workloads: {{{workload}}}}}\n");
        let change = |text: &str| format!("{text}{declared}");
        let archive = packed_parts("probe", name, self.periapt.path(), &[component], change)?;
        let archive = archive.to_str().context("a path")?;
        self.periapt.ok(["deploy", archive, name, "--storage", "scratch=1,10M"]).map(drop)
    }

    /// Lets an action of `probe/0` do one step of a script, and returns the unit's log.
    fn act(&self, step: &str) -> anyhow::Result<String> {
        self.periapt.ok(["config", "probe", &format!("script=act: {step}")])?;
        self.periapt.ok(["run", "probe/0", "act"])?;
        self.periapt.ok(["debug-log", "--replay", "--no-tail", "--include", "probe/0"])
    }

    /// Lets the charm ask the Pebble of its command, and returns the answer.
    fn ask(&self, request: &str) -> anyhow::Result<String> {
        let log = self.act(&format!("ask job {request}"))?;
        let answer = log.lines().rev().find_map(|line| Some(line.split_once(" ask ")?.1.to_owned()));
        answer.with_context(|| format!("no answer to {request} in {log}"))
    }

    /// Runs the command once more, with these arguments and options of `exec`.
    fn exec(&self, options: &[&str], arguments: &[&str]) -> anyhow::Result<Done> {
        let words =
            [&["exec", "-u", "probe/0", "--container", "job"][..], options, &["--", "job"], arguments];
        self.periapt.run(words.concat())
    }

    /// Returns the processes of the command.
    fn processes(&self) -> anyhow::Result<Vec<u32>> {
        let mut found = Vec::new();
        for pod in children(self.agent.id(), &["agent pod --keeper --driver wasm"])? {
            found.extend(children(pod, &["agent workload job"])?);
        }
        Ok(found)
    }
}

#[test]
fn an_ordinary_program_logs_and_writes_asks_related_units_and_comes_back() -> anyhow::Result<()> {
    let scene = Scene::new()?;
    let periapt = &scene.periapt;
    let command = "job say begun complain trouble write /srv/scratch/note kept sleep";
    let layer = json!({"services": {"job": {"override": "merge", "command": command}}}).to_string();
    let layer = json!({"action": "add", "combine": true, "label": "l", "format": "yaml", "layer": layer});
    let add = format!("POST /v1/layers {layer}");
    until("the layer is taken", || Ok(scene.ask(&add)?.contains(": 200 ")))?;
    scene.ask(&format!("POST /v1/services {}", json!({"action": "replan"})))?;

    // Both of its outputs are its log, and its file is in the unit's storage.
    let has_both = |log: &str| log.contains("[job] begun") && log.contains("[job] trouble");
    periapt.ok_until(&["logs", "probe/0:job"], has_both)?;
    until("a hook reads what it wrote", || {
        Ok(scene.act("read /srv/scratch/note")?.contains("read /srv/scratch/note: kept"))
    })?;

    // An operator runs it beside the service, with its own arguments and exit codes.
    let seen = scene.exec(&[], &["surroundings"])?;
    ensure!(seen.code == Some(0) && seen.stdout == "job\nsurroundings\n", "{seen:?}");
    let seen = scene.exec(&[], &["read", "/srv/scratch/note"])?;
    ensure!(seen.code == Some(0) && seen.stdout == "kept\n", "{seen:?}");
    let failed = scene.exec(&["--format", "json"], &["say", "out", "complain", "err", "exit", "7"])?;
    let shown: Value = serde_json::from_str(&failed.stdout).with_context(|| format!("{failed:?}"))?;
    // WASI tells success and failure apart, and no more.
    let expected = json!({"return-code": 1, "stdout": "out\n", "stderr": "err\n"});
    ensure!(shown.pointer("/probe~10/results") == Some(&expected), "{shown}");
    let unknown = periapt.run(["exec", "-u", "probe/0", "--container", "job", "--", "sh"])?;
    let told = format!("{}{}", unknown.stdout, unknown.stderr);
    ensure!(unknown.code == Some(1) && told.contains("there is no workload \"sh\""), "{unknown:?}");

    // It asks units that are related to its own, and no others.
    let server = format!("db-0:{PORT}");
    let asked = || -> anyhow::Result<String> {
        let done = scene.exec(&[], &["ask", &server])?;
        Ok(done.stdout + &done.stderr)
    };
    let refused = asked()?;
    ensure!(refused.contains(REFUSED), "they are not related: {refused}");
    periapt.ok(["integrate", "probe:sink", "db:db"])?;
    until("the server answers", || Ok(asked()?.contains(ANSWERED)))?;
    periapt.ok(["remove-relation", "probe", "db"])?;
    until("they are not related any more", || Ok(asked()?.contains(REFUSED)))?;

    // It is killed: another process does the same.
    let [first] = scene.processes()?[..] else { anyhow::bail!("not one process of the command") };
    signal(first, "KILL")?;
    until("another process runs", || Ok(matches!(scene.processes()?[..], [next] if next != first)))?;
    periapt.ok_until(&["logs", "probe/0:job"], |log| log.matches("[job] begun").count() >= 2).map(drop)
}
