//! Starting a process that goes on when this one has ended.

use std::{
    ffi::OsString, fs::OpenOptions, os::unix::fs::OpenOptionsExt as _, path::Path, process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use super::{Leash, ProcessId};
use crate::{
    error::{Explain as _, Failure, Result},
    input, program,
};

/// The word with which a process says, on its standard output, that it answers; what it answers at follows.
pub(crate) const READY: &str = "ready";

/// The word with which it says that it will not, and why.
pub(crate) const FAILED: &str = "failed";

/// How much of a log is shown when its process did not start.
const LOG_TAIL: u64 = 2_000;

/// A process of this program that is to outlive this one.
pub(crate) struct Detached<'a> {
    /// What it is, for messages.
    pub(crate) what: &'static str,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Where what it logs goes.
    pub(crate) log: &'a Path,
    /// How long it may take until it answers.
    pub(crate) patience: Duration,
}

/// A process that answers.
#[derive(Debug)]
pub(crate) struct Started {
    /// Which.
    pub(crate) process: ProcessId,
    /// What it said that it answers at.
    pub(crate) at: String,
    /// It ends with this, unless it is released.
    pub(crate) leash: Leash,
}

impl Detached<'_> {
    /// Starts it, hands out which one it is, and waits until it answers. Whatever becomes of this process until the leash
    /// is released, the new one does not outlive it.
    pub(crate) async fn start(self, record: impl FnOnce(&ProcessId) -> Result<()>) -> Result<Started> {
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.log)
            .explain(|| format!("cannot open {}", self.log.display()))?;
        let logged = log.metadata().map_or(0, |metadata| metadata.len());
        let (held, leash) = Leash::new().explain(|| format!("cannot start the {}", self.what))?;
        let mut child = Command::new(program::FILE)
            .arg0(program::OWN)
            .args(&self.arguments)
            .current_dir("/")
            .stdin(held)
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .explain(|| format!("cannot start the {}", self.what))?;
        let (Some(pid), Some(output)) = (child.id(), child.stdout.take()) else {
            return Err(Failure::new(format!("the {} ended at once", self.what)));
        };
        let process = ProcessId::of(pid);
        if let Ok(process) = &process {
            record(process)?;
        }
        let mut line = String::new();
        let mut output = BufReader::new(output);
        let said = timeout(self.patience, output.read_line(&mut line)).await;
        match (process, said, line.trim_end().split_once(' ')) {
            (Ok(process), Ok(Ok(_)), Some((READY, at))) => Ok(Started { process, at: at.to_owned(), leash }),
            (_, _, said) => {
                // It may never have answered: nobody else knows of it.
                let _ = child.kill().await;
                let why = said.filter(|(word, _)| *word == FAILED).map(|(_, why)| why);
                Err(self.not_started(why, logged))
            }
        }
    }

    /// With what it said itself, or else what it logged since it was started.
    fn not_started(&self, why: Option<&str>, from: u64) -> Failure {
        let mut message = format!("the {} did not start", self.what);
        if let Some(why) = why {
            message = format!("{message}: {why}");
        } else {
            for line in String::from_utf8_lossy(&input::tail(self.log, from, LOG_TAIL)).lines() {
                message.push_str("\n  ");
                message.push_str(line);
            }
        }
        Failure::new(message).with_hint(format!("its log is {}", self.log.display()))
    }
}
