//! What processes hold in memory, and directories on the disk.

use std::{collections::BTreeSet, fmt, fs, os::unix::fs::MetadataExt as _, path::Path};

use anyhow::Context as _;

use crate::Installation;

/// What a process of an installation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The controller.
    Controller,
    /// The agent's keeper.
    Keeper,
    /// The runner of one model.
    Runner,
}

/// The processes of an installation, with their numbers. Helpers come and go, and are not among them.
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

/// The memory of one kind of process, in bytes.
#[derive(Debug, Default, Clone, Copy)]
struct Process {
    /// Its own: shared with nobody, and without a file.
    anonymous: u64,
    /// Pages of files, by the process' share: the program, above all. The system can take them back.
    file: u64,
}

/// What an installation holds.
#[derive(Debug, Default)]
pub struct Held {
    controller: Process,
    keeper: Process,
    runners: Process,
    /// Files in memory that any of them has open, mapped or not, each once.
    sealed: u64,
}

impl Held {
    /// Of all processes of an installation but helpers.
    pub fn by(periapt: &Installation) -> anyhow::Result<Self> {
        let (mut held, mut seen) = (Self::default(), BTreeSet::new());
        for (pid, part) in parts(periapt)? {
            let kind = match part {
                Part::Controller => &mut held.controller,
                Part::Keeper => &mut held.keeper,
                Part::Runner => &mut held.runners,
            };
            // One that ended meanwhile holds nothing.
            let Ok(rollup) = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")) else { continue };
            kind.anonymous += kib(&rollup, "Pss_Anon:")?;
            kind.file += kib(&rollup, "Pss_File:")?;
            held.sealed += sealed(pid, &mut seen);
        }
        Ok(held)
    }

    /// All of it but pages of files, which the system takes back when it needs them.
    pub fn all(&self) -> u64 {
        self.controller.anonymous + self.keeper.anonymous + self.runners.anonymous + self.sealed
    }

    /// The controller's own memory, in bytes.
    pub fn controller(&self) -> u64 {
        self.controller.anonymous
    }

    /// The runners' own memory, in bytes.
    pub fn runners(&self) -> u64 {
        self.runners.anonymous
    }
}

impl fmt::Display for Held {
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

/// The files in memory that a process has open or mapped and that were not seen before, in bytes.
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

/// What lies below a directory, in bytes of the disk; what has several names counts once, and what is only reserved for a
/// file that grows, not at all.
pub fn on_disk(directory: &Path) -> anyhow::Result<u64> {
    let (mut seen, mut waiting, mut bytes) = (BTreeSet::new(), vec![directory.to_owned()], 0);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
            let entry = entry?;
            // What is being written may be gone.
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
