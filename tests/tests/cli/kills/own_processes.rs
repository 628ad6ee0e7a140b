//! The processes of the test's own agent, with any parent.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context as _;

/// A part of an agent, whose processes are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    /// The process that an operator starts.
    Keeper,
    /// The process that runs hooks.
    Runner,
    /// A process of a pod: that of a WebAssembly workload's; a container's guard, its process inside or its init.
    Pod,
    /// The program of a service.
    Workload,
}

impl Part {
    /// All parts.
    pub(super) const ALL: [Self; 4] = [Self::Keeper, Self::Runner, Self::Pod, Self::Workload];

    /// Returns the part's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Keeper => "keeper",
            Self::Runner => "runner",
            Self::Pod => "pod",
            Self::Workload => "workload",
        }
    }
}

/// The identity of a process: its id, which the system uses again, with the time of its start.
pub(super) type ProcessIdentity = (u32, u64);

/// A process.
#[derive(Debug, Clone)]
pub(super) struct OwnProcess {
    pub(super) id: ProcessIdentity,
    parent: u32,
    /// The command line.
    pub(super) line: String,
    /// The time for which the test has known it.
    pub(super) known_for: Duration,
}

impl OwnProcess {
    /// Returns the part that it belongs to; none for helpers.
    pub(super) fn part(&self) -> Option<Part> {
        let is = |words: &str| self.line.contains(words);
        if is(" agent run ") {
            Some(Part::Keeper)
        } else if is(" agent runner") {
            Some(Part::Runner)
        } else if is(" agent pod") {
            Some(Part::Pod)
        } else if is(" agent workload ") || is("httpd -f ") {
            Some(Part::Workload)
        } else {
            None
        }
    }
}

/// Finds the processes. One is the agent's own if its command line or environment names the installation, if its parent is
/// the agent's own, or if it was once: a pod may outlive its keeper, and be the child of another process then.
#[derive(Debug)]
pub(super) struct OwnProcesses {
    mark: String,
    known: BTreeMap<ProcessIdentity, Instant>,
}

impl OwnProcesses {
    /// Creates the finder of an installation's processes.
    pub(super) fn of(installation: &Path) -> anyhow::Result<Self> {
        let mark = installation.file_name().and_then(|name| name.to_str()).context("a directory")?;
        Ok(Self { mark: mark.to_owned(), known: BTreeMap::new() })
    }

    /// Returns those of the agent that have not ended. The controller and commands are none of them.
    pub(super) fn look(&mut self) -> anyhow::Result<Vec<OwnProcess>> {
        let mut all = BTreeMap::new();
        for entry in fs::read_dir("/proc")?.flatten() {
            let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
            // The process may have ended.
            if let Some(process) = pid.and_then(|pid| read(pid, &entry.path())) {
                all.insert(process.id.0, process);
            }
        }
        let is_marked = |process: &OwnProcess| {
            let environment = || fs::read(format!("/proc/{}/environ", process.id.0)).unwrap_or_default();
            process.line.contains(&self.mark) || String::from_utf8_lossy(&environment()).contains(&self.mark)
        };
        // Below the agent are agents' processes and those of containers.
        let is_agents = |process: &OwnProcess| process.line.contains(" agent ") || process.part().is_some();
        let is_first = |process: &OwnProcess| {
            self.known.contains_key(&process.id) || (is_agents(process) && is_marked(process))
        };
        let mut own: BTreeSet<u32> =
            all.values().filter(|process| is_first(process)).map(|process| process.id.0).collect();
        loop {
            let children = all.values().filter(|process| own.contains(&process.parent));
            let more: Vec<u32> =
                children.map(|process| process.id.0).filter(|pid| !own.contains(pid)).collect();
            if more.is_empty() {
                break;
            }
            own.extend(more);
        }
        all.retain(|pid, _| own.contains(pid));
        // A server that forks for a request is one workload.
        let is_workload = |process: &OwnProcess| process.part() == Some(Part::Workload);
        let workloads: BTreeSet<u32> =
            all.values().filter(|process| is_workload(process)).map(|process| process.id.0).collect();
        all.retain(|_, process| !is_workload(process) || !workloads.contains(&process.parent));
        let now = Instant::now();
        Ok(all
            .into_values()
            .map(|process| {
                let since = *self.known.entry(process.id).or_insert(now);
                OwnProcess { known_for: now - since, ..process }
            })
            .collect())
    }

    /// Returns the ids of all that there were.
    pub(super) fn ever(&self) -> impl Iterator<Item = u32> {
        self.known.keys().map(|(pid, _)| *pid)
    }
}

/// Reads a process; none if it has ended.
fn read(pid: u32, directory: &Path) -> Option<OwnProcess> {
    let stat = fs::read_to_string(directory.join("stat")).ok()?;
    // The name, in parentheses, may have any characters.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") {
        return None;
    }
    let (parent, begun) = (fields.get(1)?.parse().ok()?, fields.get(19)?.parse().ok()?);
    let line = fs::read(directory.join("cmdline")).ok()?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    Some(OwnProcess { id: (pid, begun), parent, line, known_for: Duration::ZERO })
}
