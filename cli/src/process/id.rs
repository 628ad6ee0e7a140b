//! Identities of processes, because process numbers are used again.

use std::{fs, io, os::fd::OwnedFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal},
};
use serde::{Deserialize, Serialize};

use crate::error::{Explain as _, Failure, Result};

/// The identity of a process: its number, its start time, and the boot of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ProcessId {
    /// The number.
    pub(crate) pid: u32,
    /// The start time, in clock ticks since the boot.
    started: u64,
    /// The id of the boot.
    boot: String,
}

/// The way in which a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The process was not running.
    Already,
    /// The process ended by itself on request.
    Gracefully,
    /// The process had to be killed.
    Killed,
}

impl ProcessId {
    /// Returns the process that has this number now.
    pub(crate) fn of(pid: u32) -> io::Result<Self> {
        Ok(Self { pid, started: started(pid)?, boot: boot()? })
    }

    /// Returns true if it runs. An ended process that is not reaped yet does not run.
    pub(crate) fn is_running(&self) -> bool {
        self.open().is_some()
    }

    /// Returns a handle on it, if it runs.
    fn open(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The handle reserves the number, so the values read now are of the same process.
        let same = Self::of(self.pid).is_ok_and(|now| now == *self);
        (same && !wait(&handle, Duration::ZERO).unwrap_or(true)).then_some(handle)
    }

    /// Asks it to end, and kills it after `timeout`. Blocks until it is gone.
    pub(crate) fn end(&self, timeout: Duration) -> Result<Ended> {
        let Some(handle) = self.open() else { return Ok(Ended::Already) };
        let what = || format!("cannot end process {}", self.pid);
        pidfd_send_signal(&handle, Signal::TERM).explain(what)?;
        if wait(&handle, timeout).explain(what)? {
            return Ok(Ended::Gracefully);
        }
        pidfd_send_signal(&handle, Signal::KILL).explain(what)?;
        match wait(&handle, Duration::from_secs(10)).explain(what)? {
            true => Ok(Ended::Killed),
            false => Err(Failure::new(format!("process {} does not end, though it was killed", self.pid))),
        }
    }
}

/// Waits at most `timeout`. Returns true if the process has ended.
fn wait(handle: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: timeout.subsec_nanos().into(),
    };
    Ok(poll(&mut [PollFd::new(handle, PollFlags::IN)], Some(&timeout))? > 0)
}

/// Reads field 22 of `/proc/PID/stat`. The second is the command's name in parentheses, which may hold any
/// character.
fn started(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name
        .split_ascii_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/{pid}/stat cannot be read")))
}

fn boot() -> io::Result<String> {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    /// Starts a process that runs until its input is closed.
    fn waiting(ignore: &str) -> std::process::Child {
        let script = format!("{ignore}echo ready; read line");
        let mut child = Command::new("sh")
            .args(["-c", &script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // The process ignores the signal from here on.
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        child
    }

    #[test]
    fn this_process_runs_and_another_with_its_number_does_not() {
        let this = ProcessId::of(std::process::id()).unwrap();
        assert!(this.is_running());
        assert!(!ProcessId { started: this.started + 1, ..this.clone() }.is_running());
        assert!(!ProcessId { boot: "another".into(), ..this }.is_running());
    }

    #[test]
    fn a_process_is_asked_to_end_and_killed_if_it_will_not() {
        for (ignore, ended) in [("", Ended::Gracefully), ("trap '' TERM; ", Ended::Killed)] {
            let mut child = waiting(ignore);
            let process = ProcessId::of(child.id()).unwrap();
            assert_eq!(process.end(Duration::from_millis(200)).unwrap(), ended);
            // The process has ended and is not reaped yet.
            assert!(!process.is_running());
            assert_eq!(process.end(Duration::ZERO).unwrap(), Ended::Already);
            child.wait().unwrap();
        }
    }
}
