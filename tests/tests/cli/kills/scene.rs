//! An agent with a unit that runs a WebAssembly workload and one that runs a container.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use periapt_tests::{Installation, POLL_INTERVAL, RunningProcess, free_port, packed, packed_parts, skipped};
use serde_json::{Value, json};

use super::{
    client::Client,
    own_processes::{OwnProcess, OwnProcesses, Part},
    units::KilledUnit,
};
use crate::containers::make_root;

/// The longest wait for what comes back: a pod that died often waits for a minute.
const COMES_BACK_WITHIN: Duration = Duration::from_secs(300);

/// The pause between two looks at what has begun.
const SETTLES_WITHIN: Duration = Duration::from_secs(1);

/// The number of processes of each part, helpers apart.
type Counts = BTreeMap<Part, usize>;

/// The agent with its units and their clients.
pub(super) struct Scene {
    pub(super) units: Vec<KilledUnit>,
    pub(super) processes: OwnProcesses,
    /// The processes before the first kill.
    usual: Counts,
    /// The kills after which pods begin anew.
    pub(super) pod_ends: usize,
    agent: RunningProcess,
    /// The number of the agent's starts.
    starts: usize,
    pub(super) periapt: Installation,
}

impl Scene {
    /// Starts everything. Without the namespaces of a container there is the WebAssembly workload alone.
    pub(super) fn start() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        let root = periapt.path().join("root");
        let has_image = make_root(&root)?;
        if has_image {
            fs::write(root.join("srv/page"), "a page of the container")?;
            periapt.ok(["image", "pack", "root", "--output", "image.tar"])?;
        }
        periapt.ok(["bootstrap", "local", "--no-agent"])?;
        periapt.ok(["add-model", "test"])?;
        let agent = started(&periapt, 1)?;
        let log = fs::read_to_string(log_of(&periapt, 1))?;
        let lacks = log.lines().find(|line| line.contains("this host makes no containers"));
        if let Some(reason) = lacks {
            skipped(reason)?;
        }
        let processes = OwnProcesses::of(periapt.path())?;
        let mut scene = Self {
            units: Vec::new(),
            processes,
            usual: Counts::new(),
            pod_ends: 0,
            agent,
            starts: 1,
            periapt,
        };
        scene.add_server()?;
        if has_image && lacks.is_none() {
            scene.add_container()?;
        }
        scene.until("the units answer", |scene| {
            Ok(scene.units.iter().all(|unit| unit.client.seen().answers > 0))
        })?;
        let units = scene.units.len();
        scene.until("each unit has its pod and its workload", |scene| {
            let counts = scene.counts()?;
            // Helpers and what begins are gone a moment later.
            sleep(SETTLES_WITHIN);
            scene.usual = scene.counts()?;
            let is_usual = |part: Part, count: usize| scene.usual.get(&part) == Some(&count);
            Ok(counts == scene.usual && is_usual(Part::Keeper, 1) && is_usual(Part::Workload, units))
        })?;
        Ok(scene)
    }

    /// Deploys the unit with a WebAssembly workload.
    fn add_server(&mut self) -> anyhow::Result<()> {
        let port = free_port()?;
        let parts = [("server.wasm", "hostile-workload")];
        let change = |text: &str| {
            let text = text.replace("containers:\n  web:\n    resource: image\n", "");
            let workload = format!("{{server: {{component: server.wasm, http: {port}}}}}");
            format!("{text}x-periapt: {{workloads: {workload}}}\n")
        };
        let charm = packed_parts("probe", "server", self.periapt.path(), &parts, change)?;
        let script = format!("start: open-port {port}/tcp");
        self.deploy(&charm, "server", &script, &[])?;
        let client = Client::begin(port, "/");
        self.units.push(KilledUnit::new("server", ("server", "--driver wasm"), script, client));
        Ok(())
    }

    /// Deploys the unit with a container, whose charm sets its service up when it is ready.
    fn add_container(&mut self) -> anyhow::Result<()> {
        let port = free_port()?;
        let name = self.periapt.path().file_name().context("a directory")?.to_string_lossy();
        let command = format!("httpd -f -r {name} -p 127.0.0.1:{port} -h /srv");
        let service = json!({"override": "replace", "command": command, "startup": "enabled", "backoff-delay": "100ms"});
        let layer = json!({"services": {"web": service}}).to_string();
        let add = json!({"action": "add", "combine": true, "label": "web", "format": "yaml", "layer": layer});
        let script = [
            format!("start: open-port {port}/tcp"),
            format!("web-pebble-ready: ask web POST /v1/layers {add}"),
            format!("web-pebble-ready: ask web POST /v1/services {}", json!({"action": "replan"})),
        ]
        .join("\n");
        let charm = packed("probe", self.periapt.path())?;
        self.deploy(&charm, "web", &script, &["--resource", "image=image.tar"])?;
        let client = Client::begin(port, "/page");
        self.units.push(KilledUnit::new("web", ("web", "--driver namespaces"), script, client));
        Ok(())
    }

    fn deploy(&self, charm: &Path, name: &str, script: &str, more: &[&str]) -> anyhow::Result<()> {
        let charm = charm.to_str().context("a path")?;
        let script = format!("script={script}");
        self.periapt.ok([&["deploy", charm, name, "--config", &script], more].concat())?;
        self.periapt.ok(["expose", name]).map(drop)
    }

    /// Starts the agent again, as a supervisor would.
    pub(super) fn restart_agent(&mut self) -> anyhow::Result<()> {
        self.starts += 1;
        self.agent = started(&self.periapt, self.starts)?;
        Ok(())
    }

    /// Returns the number of processes of each part.
    fn counts(&mut self) -> anyhow::Result<Counts> {
        let mut counts = Counts::new();
        for part in self.processes.look()?.iter().filter_map(OwnProcess::part) {
            *counts.entry(part).or_default() += 1;
        }
        Ok(counts)
    }

    /// Returns true if there are as many processes as before the first kill. A runner without work may have ended.
    pub(super) fn is_whole(&mut self) -> anyhow::Result<bool> {
        let counts = self.counts()?;
        let of = |counts: &Counts, part: Part| counts.get(&part).copied().unwrap_or_default();
        let same = [Part::Keeper, Part::Pod, Part::Workload]
            .into_iter()
            .all(|part| of(&counts, part) == of(&self.usual, part));
        Ok(same && of(&counts, Part::Runner) <= 1)
    }

    /// Waits for a condition.
    pub(super) fn until(
        &mut self,
        what: &str,
        mut holds: impl FnMut(&mut Self) -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let deadline = Instant::now() + COMES_BACK_WITHIN;
        while !holds(self)? {
            ensure!(Instant::now() < deadline, "still not so: {what}: {:#?}", self.processes.look()?);
            sleep(POLL_INTERVAL);
        }
        Ok(())
    }

    /// Adds the end of the agent's log to an error.
    pub(super) fn explain(&self, error: anyhow::Error) -> anyhow::Error {
        let log = fs::read_to_string(log_of(&self.periapt, self.starts)).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        let last = lines.get(lines.len().saturating_sub(40)..).unwrap_or_default();
        error.context(format!("the last lines of the agent's log:\n{}", last.join("\n")))
    }

    /// Checks what the charms were told, removes everything, and checks that nothing is left.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        for unit in &self.units {
            unit.check(1 + self.pod_ends)?;
        }
        for unit in std::mem::take(&mut self.units) {
            self.periapt.ok(["remove-application", unit.name, "--no-prompt"])?;
        }
        let removed = self.until("all pods have ended with their units", |scene| {
            let counts = scene.counts()?;
            Ok(!counts.contains_key(&Part::Pod) && !counts.contains_key(&Part::Workload))
        });
        removed.map_err(|error| self.explain(error))?;
        let Self { agent, mut processes, periapt: _periapt, .. } = self;
        agent.end("TERM")?;
        let deadline = Instant::now() + COMES_BACK_WITHIN;
        loop {
            let (left, cgroups) = (processes.look()?, cgroups_of(&processes));
            if left.is_empty() && cgroups.is_empty() {
                return Ok(());
            }
            ensure!(Instant::now() < deadline, "left behind: {left:#?} {cgroups:#?}");
            sleep(POLL_INTERVAL);
        }
    }
}

fn log_of(periapt: &Installation, start: usize) -> PathBuf {
    periapt.path().join(format!("agent-{start}.log"))
}

fn started(periapt: &Installation, start: usize) -> anyhow::Result<RunningProcess> {
    let options = ["--workloads", "wasm,namespaces", "--listen-address", "127.0.0.1", "--peer-port", "0"];
    let log = log_of(periapt, start);
    let mut agent = match start {
        1 => periapt.agent_logged("worker", &log, options)?,
        // It has joined already, and is started with the same words.
        _ => {
            let listing = periapt.json(["controllers"])?;
            let url = listing.pointer("/controllers/local/url").and_then(Value::as_str).context("no URL")?;
            let run = ["agent", "run", "--controller", url, "--name", "worker", "--data", "worker"];
            let token = ["--token-file", "worker.token"];
            periapt.logged(periapt.command(run.iter().chain(&token).chain(&options)), &log)?
        }
    };
    ensure!(agent.first_line()? == "ready worker", "{}", fs::read_to_string(&log)?);
    Ok(agent)
}

/// Returns the cgroups of containers whose guard was a process of the agent's.
fn cgroups_of(processes: &OwnProcesses) -> Vec<PathBuf> {
    let names: Vec<String> = processes.ever().map(|pid| format!("periapt-container-{pid}")).collect();
    let (mut found, mut open) = (Vec::new(), vec![PathBuf::from("/sys/fs/cgroup")]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_str().is_some_and(|name| names.iter().any(|own| own == name)) {
                found.push(entry.path());
            }
            open.push(entry.path());
        }
    }
    found
}
