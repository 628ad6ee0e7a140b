//! Hostile workloads of a real agent, and an honest page beside them.

use std::{
    fs,
    net::Ipv4Addr,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Context as _, ensure};
use serde_json::Value;

use super::row::{AttackRow, AttackedProcess, StoppedBy};
use crate::{
    Installation, InstallationGuard, RunningProcess, busybox_root, free_port, packed_changed, packed_parts,
};

mod attacks;
mod clients;
mod connections;
mod server;

use clients::{Clients, asked};
pub use server::ServerAttack;

/// The address at which the agent listens for its workloads, which no other test uses.
const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 11);

/// The port of the honest page.
const HONEST: u16 = 8080;

/// The port of the server in the hostile container.
const HOSTILE: u16 = 8099;

/// The time that an agent may take for what an attack causes.
const WITHIN: Duration = Duration::from_secs(180);

/// An attack of the catalogue of workloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkloadAttack {
    /// Starts processes as long as it can.
    ForkBomb,
    /// Takes memory without end.
    Memory,
    /// Writes new files without end.
    NewFiles,
    /// Leaves processes behind, whose starter has ended.
    Orphans,
    /// Connects to what is none of its own: the metadata service, the controller, the host, another model's unit.
    ForbiddenTargets,
    /// Looks for the host's files and processes.
    HostFiles,
    /// Writes the storage of another unit, and the files of its container.
    NeighboursFiles,
    /// Asks for rights that it does not have.
    Rights,
    /// Holds as many clients as it can, and never reads what they send.
    DeafServer,
    /// Answers for ever, and most clients read none of it.
    EndlessAnswer,
    /// Is an image that is made to do harm, or is none.
    Images,
    /// Writes past its storage, into a file that it has deleted and holds open.
    DeletedFiles,
    /// Writes past its storage.
    Storage,
}

impl WorkloadAttack {
    /// All attacks, in the order of the table. The last one ends the hostile container.
    pub const ALL: [Self; 13] = [
        Self::ForkBomb,
        Self::Memory,
        Self::NewFiles,
        Self::Orphans,
        Self::ForbiddenTargets,
        Self::HostFiles,
        Self::NeighboursFiles,
        Self::Rights,
        Self::DeafServer,
        Self::EndlessAnswer,
        Self::Images,
        Self::DeletedFiles,
        Self::Storage,
    ];

    /// Returns the attack's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ForkBomb => "a fork bomb",
            Self::Memory => "memory without end",
            Self::NewFiles => "new files without end",
            Self::Orphans => "orphans",
            Self::ForbiddenTargets => "forbidden targets",
            Self::HostFiles => "the host's files",
            Self::NeighboursFiles => "a neighbour's files",
            Self::Rights => "rights",
            Self::DeafServer => "a deaf server",
            Self::EndlessAnswer => "an endless answer",
            Self::Images => "hostile images",
            Self::DeletedFiles => "deleted files",
            Self::Storage => "past its storage",
        }
    }

    fn run(self, agent: &AttackedAgent) -> anyhow::Result<StoppedBy> {
        match self {
            Self::ForkBomb => agent.fork_bomb(),
            Self::Memory => agent.take_memory(),
            Self::NewFiles => agent.new_files(),
            Self::Orphans => agent.orphans(),
            Self::ForbiddenTargets => agent.forbidden_targets(),
            Self::HostFiles => agent.host_files(),
            Self::NeighboursFiles => agent.neighbours_files(),
            Self::Rights => agent.rights(),
            Self::DeafServer => agent.deaf_server(),
            Self::EndlessAnswer => agent.endless_answer(),
            Self::Images => agent.images(),
            Self::DeletedFiles => agent.deleted_files(),
            Self::Storage => agent.storage(),
        }
    }
}

/// An agent with an honest page in WebAssembly, and with hostile units in other models.
#[derive(Debug)]
pub struct AttackedAgent {
    agent: RunningProcess,
    controller: u16,
    /// The port at which other agents reach this one.
    peers: u16,
    _guard: InstallationGuard,
    periapt: Installation,
}

/// The end of a script.
struct Shell {
    code: i64,
    text: String,
}

impl AttackedAgent {
    /// Starts a controller, an agent and the honest page.
    ///
    /// # Errors
    /// A part of it does not start.
    pub fn begun() -> anyhow::Result<Self> {
        let periapt = Installation::empty()?;
        let guard = InstallationGuard::of(&periapt)?;
        let (controller, peers) = (free_port()?, free_port()?);
        periapt.ok(["bootstrap", "local", "--no-agent", "--listen", &format!("127.0.0.1:{controller}")])?;
        periapt.ok(["add-model", "honest"])?;
        let log = periapt.path().join("agent.log");
        let (address, port) = (ADDRESS.to_string(), peers.to_string());
        let options = ["--workloads", "wasm,namespaces", "--listen-address", &address, "--peer-port", &port];
        let mut agent = periapt.agent_logged("worker", &log, options)?;
        ensure!(agent.first_line()? == "ready worker", "{}", fs::read_to_string(&log)?);
        let this = Self { agent, controller, peers, _guard: guard, periapt };
        let parts = [("web.wasm", "web-page-server")];
        let page = packed_parts("web-page", "first", this.periapt.path(), &parts, str::to_owned)?;
        this.periapt.ok(["deploy", page.to_str().context("a path")?])?;
        this.periapt.ok(["expose", "web-page"])?;
        this.until("the honest page is served", || Ok(asked(HONEST).is_ok()))?;
        Ok(this)
    }

    /// Deploys the hostile container. Returns the reason where no container can be made.
    ///
    /// # Errors
    /// It does not start.
    pub fn begin_container(&self) -> anyhow::Result<Result<(), String>> {
        if let Err(reason) = busybox_root(&self.periapt.path().join("root"))? {
            return Ok(Err(reason));
        }
        let log = fs::read_to_string(self.periapt.path().join("agent.log"))?;
        if let Some(line) = log.lines().find(|line| line.contains("this host makes no containers")) {
            return Ok(Err(line.to_owned()));
        }
        let mark = format!("MARK={}", self.mark());
        self.periapt.ok(["image", "pack", "root", "--output", "image.tar", "--env", &mark])?;
        self.periapt.ok(["add-model", "hostile"])?;
        let mounted = |text: &str| {
            let more = "    resource: image\n    mounts: [{storage: scratch, location: /data}]\n";
            text.replace("    resource: image\n", more)
        };
        let charm = packed_changed("probe", "hostile", self.periapt.path(), mounted)?;
        let charm = charm.to_str().context("a path")?;
        let port = format!("script=start: open-port {HOSTILE}/tcp");
        let options = ["--storage", "scratch=1,10M", "--resource", "image=image.tar", "--config", &port];
        self.periapt.ok([&["deploy", charm, "hostile"], &options[..]].concat())?;
        self.periapt.ok(["expose", "hostile"])?;
        self.until("the hostile container runs", || Ok(self.sh("true").is_ok_and(|shell| shell.code == 0)))?;
        Ok(Ok(()))
    }

    /// Runs an attack beside clients of the honest page, of which each asks at least so often.
    ///
    /// # Errors
    /// The attack or an honest client failed for a reason of its own.
    pub fn attack(&self, attack: Option<WorkloadAttack>, calls: usize) -> anyhow::Result<AttackRow> {
        let name = attack.map_or("nobody", WorkloadAttack::name);
        self.beside(name, calls, || attack.map_or(Ok(StoppedBy::Nothing), |attack| attack.run(self)))
    }

    /// Does something hostile beside clients of the honest page.
    fn beside(
        &self,
        name: &'static str,
        calls: usize,
        attack: impl FnOnce() -> anyhow::Result<StoppedBy>,
    ) -> anyhow::Result<AttackRow> {
        let agent = self.agent.id();
        let before = figure(agent, "VmRSS:")?;
        forget_peak(agent)?;
        let honest = Clients::begin(calls);
        let stopped = attack();
        // The honest client's failure explains more than the attack's.
        let latencies = honest.end().with_context(|| format!("the honest client, beside {name}"))?;
        let stopped = stopped.with_context(|| name.to_owned())?;
        Ok(AttackRow {
            name,
            process: AttackedProcess::Agent,
            is_stopped: !matches!(stopped, StoppedBy::Nobody(_)),
            stopped,
            before,
            peak: figure(agent, "VmHWM:")?,
            after: figure(agent, "VmRSS:")?,
            latencies,
        })
    }

    /// Removes the hostile unit.
    ///
    /// # Errors
    /// A process of its container is left.
    pub fn end_container(&self) -> anyhow::Result<()> {
        let words = ["remove-application", "-m", "hostile", "hostile", "--no-prompt", "--destroy-storage"];
        self.periapt.ok(words)?;
        self.until("no process of the hostile container is left", || Ok(self.marked()? == 0))
    }

    /// Runs a script in the hostile container. Returns its return code and all that it wrote.
    fn sh(&self, script: &str) -> anyhow::Result<Shell> {
        self.sh_of("hostile/0", script)
    }

    /// Runs a script in the container of a unit.
    fn sh_of(&self, unit: &str, script: &str) -> anyhow::Result<Shell> {
        let words = ["exec", "-m", "hostile", "--unit", unit, "--container", "web", "--format", "json"];
        let done = self.periapt.run([&words[..], &["--", "sh", "-c", script]].concat())?;
        let tasks: Value = serde_json::from_str(&done.stdout).with_context(|| format!("{done:?}"))?;
        let results = tasks.as_object().and_then(|tasks| tasks.values().next()).map(|task| &task["results"]);
        let results = results.with_context(|| tasks.to_string())?;
        let text = |name: &str| results[name].as_str().unwrap_or_default().to_owned();
        let code = results["return-code"].as_i64().with_context(|| tasks.to_string())?;
        Ok(Shell { code, text: text("stdout") + &text("stderr") })
    }

    /// Returns the number of processes of the hostile container, by the mark in its environment.
    fn marked(&self) -> anyhow::Result<usize> {
        let mark = format!("MARK={}\0", self.mark());
        Ok(processes(|_, environment| contains(environment, mark.as_bytes()))?.len())
    }

    /// Returns a word that no other run has.
    fn mark(&self) -> String {
        self.periapt.path().file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn until(&self, what: &str, holds: impl Fn() -> anyhow::Result<bool>) -> anyhow::Result<()> {
        let deadline = Instant::now() + WITHIN;
        while !holds()? {
            ensure!(Instant::now() < deadline, "{what}\n{}", self.periapt.logs());
            sleep(Duration::from_millis(200));
        }
        Ok(())
    }
}

/// Returns the processes whose command line and environment are as wanted.
fn processes(is_wanted: impl Fn(&[u8], &[u8]) -> bool) -> anyhow::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // The process may have ended.
        let read = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
        if is_wanted(&read("cmdline"), &read("environ")) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Returns a figure of a process's memory, in bytes.
fn figure(pid: u32, name: &str) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name)).context("a figure")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

/// Begins a new peak of a process's memory.
fn forget_peak(pid: u32) -> anyhow::Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
