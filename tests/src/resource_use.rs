//! The memory and the CPU time of processes, and the size of directories on the disk.

use std::{collections::BTreeSet, fmt, fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::Context as _;

use crate::Installation;

/// The kind of a process of an installation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The controller.
    Controller,
    /// The agent's keeper.
    Keeper,
    /// The runner of one model.
    Runner,
}

/// Returns the long-running processes of an installation with their ids. Short-lived helpers are left out.
pub fn parts(periapt: &Installation) -> anyhow::Result<Vec<(u32, Part)>> {
    let mut parts = Vec::new();
    for pid in periapt.processes()? {
        let words = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let part = match () {
            () if words.contains("\0agent\0runner\0") => Part::Runner,
            () if words.contains("\0agent\0run\0") => Part::Keeper,
            () if words.contains("\0controller\0run\0") => Part::Controller,
            () => continue,
        };
        parts.push((pid, part));
    }
    Ok(parts)
}

/// The memory of the processes of one kind, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Process {
    /// Private memory without a file.
    anonymous: u64,
    /// The process's share of file pages, mostly of the program. The system can reclaim them.
    file: u64,
}

/// The memory of an installation.
#[derive(Debug, Default)]
pub struct MemoryUse {
    controller: Process,
    keeper: Process,
    runners: Process,
    /// The files in memory that any of the processes has open or mapped, each counted once.
    sealed: u64,
}

impl MemoryUse {
    /// Measures all processes of an installation except helpers.
    pub fn by(periapt: &Installation) -> anyhow::Result<Self> {
        let (mut held, mut seen) = (Self::default(), BTreeSet::new());
        for (pid, part) in parts(periapt)? {
            let kind = match part {
                Part::Controller => &mut held.controller,
                Part::Keeper => &mut held.keeper,
                Part::Runner => &mut held.runners,
            };
            // The process may have ended.
            let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
            kind.anonymous += kib(&rollup, "Pss_Anon:")?;
            kind.file += kib(&rollup, "Pss_File:")?;
            held.sealed += sealed(pid, &mut seen);
        }
        Ok(held)
    }

    /// Returns all memory except file pages, which the system can reclaim, in bytes.
    pub fn all(&self) -> u64 {
        self.controller.anonymous + self.keeper.anonymous + self.runners.anonymous + self.sealed
    }

    /// Returns the controller's private memory, in bytes.
    pub fn controller(&self) -> u64 {
        self.controller.anonymous
    }

    /// Returns the runners' private memory, in bytes.
    pub fn runners(&self) -> u64 {
        self.runners.anonymous
    }
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "{:7.1} MiB: controller {:.1}, keeper {:.1}, runner {:.1}, code and images {:.1}; of files {:.1}",
            mib(self.all()),
            mib(self.controller.anonymous),
            mib(self.keeper.anonymous),
            mib(self.runners.anonymous),
            mib(self.sealed),
            mib(self.controller.file + self.keeper.file + self.runners.file),
        )
    }
}

fn kib(rollup: &str, name: &str) -> anyhow::Result<u64> {
    let line = rollup.lines().find(|line| line.starts_with(name)).with_context(|| format!("no {name}"))?;
    let number = line.split_whitespace().nth(1).context("a number")?;
    Ok(number.parse::<u64>()? << 10)
}

/// Returns the size of the files in memory that a process has open or mapped and that are not in `seen`, in bytes.
fn sealed(pid: u32, seen: &mut BTreeSet<u64>) -> u64 {
    let mut bytes = 0;
    for directory in ["fd", "map_files"] {
        for entry in fs::read_dir(format!("/proc/{pid}/{directory}")).into_iter().flatten().flatten() {
            let is_memory =
                fs::read_link(entry.path()).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:"));
            let Ok(metadata) = fs::metadata(entry.path()) else { continue };
            if is_memory && seen.insert(metadata.ino()) {
                bytes += metadata.blocks() * 512;
            }
        }
    }
    bytes
}

/// The kernel's unit of CPU time, in seconds: 100 Hz on all current Linux systems.
const TICK: f64 = 0.01;

/// CPU time of a process, in seconds with a precision of 10 ms.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct CpuTime {
    /// The time of its threads.
    pub own: f64,
    /// The time of its children that have ended.
    pub children: f64,
}

impl CpuTime {
    /// Returns the CPU time of a process since its start; none if it has ended.
    pub fn of(process: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // The name may contain spaces. The state and ten more fields stand between it and the times.
        let (_, rest) = stat.rsplit_once(')')?;
        let mut ticks = rest.split_whitespace().skip(11).map(|word| word.parse::<f64>().ok());
        let mut next = || ticks.next()?;
        let (user, system, children_user, children_system) = (next()?, next()?, next()?, next()?);
        Some(Self { own: (user + system) * TICK, children: (children_user + children_system) * TICK })
    }
}

/// Returns the bytes that the files below a directory take on the disk. A file with several names counts once, and
/// space reserved past a file's end does not count.
pub fn on_disk(directory: &Path) -> anyhow::Result<u64> {
    let (mut seen, mut waiting, mut bytes) = (BTreeSet::new(), vec![directory.to_owned()], 0);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            // A temporary file may be gone.
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                waiting.push(entry.path());
            } else if seen.insert(metadata.ino()) {
                bytes += metadata.len().next_multiple_of(4096).min(metadata.blocks() * 512);
            }
        }
    }
    Ok(bytes)
}
