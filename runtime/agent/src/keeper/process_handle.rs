//! A process by its descriptor, of this keeper or an earlier one.

use std::{
    fs, io,
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::process::ExitStatusExt as _,
    },
    process::{Child, ExitStatus},
    time::Duration,
};

use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::{io::unix::AsyncFd, time::timeout};

/// A process, which no other process can be taken for.
#[derive(Debug)]
pub(crate) struct ProcessHandle {
    handle: AsyncFd<OwnedFd>,
    /// The end of the process in words; none while it may run.
    ended: Option<String>,
}

impl ProcessHandle {
    /// Takes a descriptor of a process.
    pub(crate) fn new(handle: OwnedFd) -> io::Result<Self> {
        #[expect(unsafe_code, reason = "the descriptor is owned, and stays the same one until it is dropped")]
        let handle = unsafe { AsyncFd::register(handle) }?;
        Ok(Self { handle, ended: None })
    }

    /// Takes a child, for which nothing else waits. It is killed if that fails.
    pub(crate) fn of_child(mut child: Child) -> io::Result<Self> {
        let taken = open(child.id()).and_then(Self::new);
        if taken.is_err() {
            let _ = child.kill();
            let _ = child.wait();
        }
        taken
    }

    /// Takes a process by its number, which it has while it answers the caller.
    pub(crate) fn of(process: u32) -> io::Result<Self> {
        open(process).and_then(Self::new)
    }

    /// Returns the descriptor.
    pub(crate) fn descriptor(&self) -> &OwnedFd {
        self.handle.get_ref()
    }

    /// Returns the number of the process; none once it has ended.
    pub(crate) fn id(&self) -> Option<u32> {
        if self.ended.is_some() {
            return None;
        }
        let shown = fs::read_to_string(format!("/proc/self/fdinfo/{}", self.handle.get_ref().as_raw_fd()));
        shown.ok()?.lines().find_map(|line| line.strip_prefix("Pid:")?.trim().parse().ok())
    }

    /// Returns true if the process is known to have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// Waits for the end of the process, and returns it in words.
    pub(crate) async fn ended(&mut self) -> String {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        // An error means that the runtime ends.
        let _ = self.handle.readable().await;
        let ended = reap(self.handle.get_ref());
        self.ended.insert(ended).clone()
    }

    /// Waits for the end of the process, kills it after a while, and returns its end in words. Calls `late` then.
    pub(crate) async fn ends_within(&mut self, grace: Duration, late: impl FnOnce()) -> String {
        if let Ok(ended) = timeout(grace, self.ended()).await {
            return ended;
        }
        late();
        self.kill();
        self.ended().await
    }

    /// Kills the process.
    pub(crate) fn kill(&self) {
        if self.ended.is_none()
            && let Err(error) = pidfd_send_signal(self.handle.get_ref(), Signal::KILL)
        {
            tracing::debug!(%error, "a process could not be killed; it is gone already");
        }
    }

    /// Kills the process, and takes its end without a wait of the caller.
    pub(crate) fn kill_and_forget(&self) {
        self.kill();
        let Ok(handle) = self.handle.get_ref().try_clone() else { return };
        // A child whose end nobody takes would stay as a zombie.
        let reaper = std::thread::Builder::new().name("reaper".to_owned());
        let _ = reaper.spawn(move || waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED).is_ok());
    }
}

fn open(process: u32) -> io::Result<OwnedFd> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::other("no process has this number"))?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

/// Takes the end of a process that has ended. Only its parent learns how.
fn reap(handle: &OwnedFd) -> String {
    let status = waitid(WaitId::PidFd(handle.as_fd()), WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    match status.ok().flatten().and_then(|status| raw(&status)) {
        Some(raw) => ExitStatus::from_raw(raw).to_string(),
        None => "it has ended".to_owned(),
    }
}

fn raw(status: &WaitIdStatus) -> Option<i32> {
    status.terminating_signal().or_else(|| status.exit_status().map(|code| code << 8))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn shell(script: &str) -> ProcessHandle {
        ProcessHandle::of_child(Command::new("/bin/sh").args(["-c", script]).spawn().unwrap()).unwrap()
    }

    #[tokio::test]
    async fn the_end_of_a_child_is_told_and_one_that_does_not_end_is_killed() {
        let mut process = shell("exit 3");
        assert!(!process.has_ended());
        assert_eq!(process.ended().await, "exit status: 3");
        assert!(process.has_ended());
        assert_eq!(process.ended().await, "exit status: 3", "it is known from then on");
        let mut process = shell("exec sleep 600");
        let mut is_late = false;
        let how = process.ends_within(Duration::from_millis(10), || is_late = true).await;
        assert_eq!((how.as_str(), is_late), ("signal: 9 (SIGKILL)", true));
    }

    #[tokio::test]
    async fn the_end_of_another_process_is_seen() {
        // The shell is no parent of its background process once it has ended.
        let shell =
            Command::new("/bin/sh").args(["-c", "sleep 600 >/dev/null 2>&1 & echo $!"]).output().unwrap();
        let process = String::from_utf8(shell.stdout).unwrap().trim().parse().unwrap();
        let mut handle = ProcessHandle::of(process).unwrap();
        assert_eq!(handle.id(), Some(process));
        handle.kill();
        assert_eq!(handle.ended().await, "it has ended");
        assert_eq!(handle.id(), None);
    }
}
