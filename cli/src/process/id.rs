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

/// The longest wait for a killed process to end.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

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

    /// Returns true if it runs. An ended process that is not reaped yet does not run. Blocks while a killed process
    /// ends.
    pub(crate) fn is_running(&self) -> bool {
        self.open().is_some()
    }

    /// Returns a handle on it, if it runs.
    fn open(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // The handle reserves the number, so the values read now are of the same process.
        let same = Self::of(self.pid).is_ok_and(|now| now == *self);
        // The first thread of a killed process may be gone before the others, which still hold its files and ports.
        let within = if is_zombie(self.pid) { ENDS_WITHIN } else { Duration::ZERO };
        (same && !wait(&handle, within).unwrap_or(true)).then_some(handle)
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
        match wait(&handle, ENDS_WITHIN).explain(what)? {
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

/// Returns true if a process's first thread has ended.
fn is_zombie(pid: u32) -> bool {
    stat_field(pid, 3).is_ok_and(|state| state == "Z")
}

/// Returns the start time of a process, in clock ticks since the boot.
fn started(pid: u32) -> io::Result<u64> {
    stat_field(pid, 22)?.parse().map_err(|_| unreadable(pid))
}

/// Reads a field of `/proc/PID/stat` after the second, which is the command's name in parentheses and may hold any
/// character.
fn stat_field(pid: u32, number: usize) -> io::Result<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let field = number.checked_sub(3).and_then(|nth| after_name.split_ascii_whitespace().nth(nth));
    field.map(str::to_owned).ok_or_else(|| unreadable(pid))
}

fn unreadable(pid: u32) -> io::Error {
    io::Error::other(format!("/proc/{pid}/stat cannot be read"))
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
    fn a_process_runs_no_longer_once_its_last_thread_has_ended() {
        let script = "import ctypes, threading, time\n\
                      threading.Thread(target=time.sleep, args=[2]).start()\n\
                      print(flush=True)\n\
                      ctypes.CDLL(None).pthread_exit(None)";
        let python = Command::new("python3").args(["-c", script]).stdout(Stdio::piped()).spawn();
        let mut child = python.unwrap();
        let process = ProcessId::of(child.id()).unwrap();
        let mut line = String::new();
        io::BufRead::read_line(&mut io::BufReader::new(child.stdout.take().unwrap()), &mut line).unwrap();
        while !is_zombie(process.pid) {
            std::thread::sleep(Duration::from_millis(1));
        }
        let thread = fs::read_dir(format!("/proc/{}/task", process.pid)).unwrap().nth(1);
        assert!(thread.is_some(), "the other thread has ended too early for this test");
        assert!(!process.is_running());
        let threads = fs::read_dir(format!("/proc/{}/task", process.pid)).unwrap().count();
        assert_eq!(threads, 1, "a thread still runs");
        child.wait().unwrap();
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
