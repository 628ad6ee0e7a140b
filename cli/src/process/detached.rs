//! The start of a process that outlives this one.

use std::{
    ffi::OsString, fs::OpenOptions, os::unix::fs::OpenOptionsExt as _, path::Path, process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::Command,
    time::timeout,
};

use super::{ProcessId, StartGuard};
use crate::{
    error::{Explain as _, Failure, Result},
    input, program,
};

/// The word on its standard output by which a process reports that it answers; its address follows.
pub(crate) const READY: &str = "ready";

/// The word by which a process reports that it will not answer; the reason follows.
pub(crate) const FAILED: &str = "failed";

/// The most bytes of a log that an error shows when its process did not start.
const LOG_TAIL: u64 = 2_000;

/// A process of this program that is to outlive this one.
pub(crate) struct Detached<'a> {
    /// The kind of process, for messages.
    pub(crate) what: &'static str,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// The path of its log.
    pub(crate) log: &'a Path,
    /// The longest wait for it to answer.
    pub(crate) timeout: Duration,
}

/// A process that answers.
#[derive(Debug)]
pub(crate) struct Started {
    /// The process.
    pub(crate) process: ProcessId,
    /// Its address.
    pub(crate) at: String,
    /// The guard, which ends the process unless it is released.
    pub(crate) guard: StartGuard,
}

impl Detached<'_> {
    /// Starts the process, passes its id to `record`, and waits until it answers. Until the guard is released the new
    /// process does not outlive this one.
    pub(crate) async fn start(self, record: impl FnOnce(&ProcessId) -> Result<()>) -> Result<Started> {
        let log = OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o600)
            .open(self.log)
            .explain(|| format!("cannot open {}", self.log.display()))?;
        let logged = log.metadata().map_or(0, |metadata| metadata.len());
        let (held, guard) = StartGuard::new().explain(|| format!("cannot start the {}", self.what))?;
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
        let said = timeout(self.timeout, output.read_line(&mut line)).await;
        match (process, said, line.trim_end().split_once(' ')) {
            (Ok(process), Ok(Ok(_)), Some((READY, at))) => Ok(Started { process, at: at.to_owned(), guard }),
            (_, _, said) => {
                // It may never have answered, and no record names it.
                let _ = child.kill().await;
                let why = said.filter(|(word, _)| *word == FAILED).map(|(_, why)| why);
                Err(self.not_started(why, logged))
            }
        }
    }

    /// Creates the failure, with the process's own reason, or else its log since the start.
    fn not_started(&self, why: Option<&str>, from: u64) -> Failure {
        let mut message = format!("the {} did not start", self.what);
        if let Some(why) = why {
            // The reason says all, and a start that is undone leaves no log.
            return Failure::new(format!("{message}: {why}"));
        }
        for line in String::from_utf8_lossy(&input::tail(self.log, from, LOG_TAIL)).lines() {
            message.push_str("\n  ");
            message.push_str(line);
        }
        Failure::new(message).with_hint(format!("its log is {}", self.log.display()))
    }
}
