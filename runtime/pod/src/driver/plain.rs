//! The driver without isolation, for tests alone: processes of the pod's own user, on the host's files and network.

use std::{
    collections::BTreeMap,
    io,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use periapt_pebble::{ProcessId, Signal, Spawn};
use rustix::process::{
    Pid, WaitId, WaitIdOptions, WaitOptions, kill_process, kill_process_group, set_child_subreaper,
    set_parent_process_death_signal, wait, waitid,
};

use super::{Driver, Streams, accounts::Accounts};

/// The search path of processes that are given none.
pub(crate) const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The time in which all processes must be gone at the end: the kernel takes a moment for each.
const KILL_TIME: Duration = Duration::from_secs(5);

/// A process that was started and is not reaped.
#[derive(Debug)]
struct Child {
    process: ProcessId,
    /// A service: the rest of its group ends with it.
    is_service: bool,
}

/// The driver without isolation.
#[derive(Debug, Default)]
pub struct Plain {
    children: BTreeMap<i32, Child>,
}

impl Plain {
    /// Creates the driver.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a child of this process over, which has a process group of its own.
    pub(super) fn started(
        &mut self,
        child: &std::process::Child,
        process: ProcessId,
        spawn: &Spawn,
    ) -> Result<(), String> {
        let pid = i32::try_from(child.id()).map_err(|error| error.to_string())?;
        self.children.insert(pid, Child { process, is_service: spawn.stdio == periapt_pebble::Stdio::Log });
        Ok(())
    }

    /// Sends a signal by its number.
    pub(crate) fn send(&self, process: ProcessId, signal: i32) {
        let Some(pid) = self.pid(process) else { return };
        let Some(signal) = rustix::process::Signal::from_named_raw(signal) else { return };
        // Until it is reaped, its number is nobody else's. The group may not be there yet.
        if kill_process_group(pid, signal).is_err() {
            let _ = kill_process(pid, signal);
        }
    }

    fn pid(&self, process: ProcessId) -> Option<Pid> {
        let found = self.children.iter().find(|(_, known)| known.process == process);
        found.and_then(|(pid, _)| Pid::from_raw(*pid))
    }
}

impl Driver for Plain {
    fn create(&mut self) -> io::Result<()> {
        // Processes whose parents have ended become the pod's children, so that it can find and reap them.
        Ok(set_child_subreaper(Some(rustix::process::getpid()))?)
    }

    fn root(&self) -> PathBuf {
        "/".into()
    }

    fn spawn(&mut self, process: ProcessId, spawn: &Spawn, streams: Streams) -> Result<(), String> {
        let root = self.root();
        let (program, arguments) = spawn.command.split_first().ok_or("the command is empty")?;
        let accounts = Accounts::read(&root);
        let account = accounts.resolve(&spawn.account)?;
        let own = rustix::process::geteuid().as_raw();
        let (home, user) = match &account {
            Some(account) => (account.home.clone(), account.name.clone()),
            None => (
                accounts.home(own).unwrap_or("/").to_owned(),
                accounts.user_name(own).unwrap_or("root").to_owned(),
            ),
        };
        let directory = if spawn.working_dir.is_empty() { home.as_str() } else { spawn.working_dir.as_str() };
        if !Path::new(directory).is_dir() {
            return Err(format!("working directory {directory:?} does not exist"));
        }
        let Streams { stdin, stdout, stderr, is_terminal } = streams;
        let terminal =
            is_terminal.then(|| stdout.try_clone()).transpose().map_err(|error| error.to_string())?;
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs([("PATH", PATH), ("HOME", home.as_str()), ("USER", user.as_str())])
            .envs(&spawn.environment)
            .current_dir(directory)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        if let Some(account) =
            account.filter(|account| account.user_id != own || account.group_id != own_group())
        {
            command.uid(account.user_id).gid(account.group_id);
        }
        if !is_terminal {
            command.process_group(0);
        }
        let prepare = move || {
            unblock_signals()?;
            if let Some(terminal) = &terminal {
                rustix::process::setsid()?;
                rustix::process::ioctl_tiocsctty(terminal)?;
            }
            // After the change of the user, which clears it. The parent is the driver's thread, which ends last.
            set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
            Ok(())
        };
        #[expect(
            unsafe_code,
            reason = "between fork and exec, it makes system calls alone and allocates nothing"
        )]
        unsafe {
            command.pre_exec(prepare);
        }
        // The handle is dropped: `exits` reaps.
        let child = command.spawn().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("cannot find executable {program:?}"),
            _ => format!("cannot run {program:?}: {error}"),
        })?;
        self.started(&child, process, spawn)
    }

    fn signal(&mut self, process: ProcessId, signal: Signal) {
        self.send(process, signal.number());
    }

    fn exits(&mut self) -> Vec<(ProcessId, i32)> {
        // Before services are reaped, so that the numbers of their groups are still their own.
        let peek = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        for pid in
            self.children.iter().filter(|(_, child)| child.is_service).filter_map(|it| Pid::from_raw(*it.0))
        {
            if matches!(waitid(WaitId::Pid(pid), peek), Ok(Some(_))) {
                let _ = kill_process_group(pid, rustix::process::Signal::KILL);
            }
        }
        let mut exits = Vec::new();
        while let Ok(Some((pid, ended))) = wait(WaitOptions::NOHANG) {
            // Others are orphans of a workload.
            if let Some(Child { process, .. }) = self.children.remove(&pid.as_raw_nonzero().get()) {
                let code = match (ended.exit_status(), ended.terminating_signal()) {
                    (Some(code), _) => code,
                    (None, Some(signal)) => 128 + signal,
                    (None, None) => -1,
                };
                exits.push((process, code));
            }
        }
        exits
    }

    fn kill(&mut self) {
        let until = Instant::now() + KILL_TIME;
        loop {
            let mut left = descendants();
            // Behind a fence that hides other processes these are all that there are.
            left.extend(self.children.keys().filter_map(|pid| Pid::from_raw(*pid)));
            for pid in &left {
                let _ = kill_process(*pid, rustix::process::Signal::KILL);
            }
            self.exits();
            if left.is_empty() || Instant::now() > until {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

fn own_group() -> u32 {
    rustix::process::getegid().as_raw()
}

/// Lets all signals through: a process inherits what its parent blocks, also as another program.
fn unblock_signals() -> io::Result<()> {
    #[expect(
        unsafe_code,
        reason = "the set is initialised before it is read, and lives until the call returns"
    )]
    let done = unsafe {
        let mut none = std::mem::MaybeUninit::uninit();
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), std::ptr::null_mut())
    };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Returns the processes that come from this one. Those whose parents have ended are its children.
fn descendants() -> Vec<Pid> {
    let mut parents: Vec<(i32, i32)> = Vec::new();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    for entry in entries {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let stat = std::fs::read(entry.path().join("stat")).unwrap_or_default();
        let stat = String::from_utf8_lossy(&stat);
        // The name, in parentheses, may contain anything; the state and the parent follow its end.
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parents.extend(parent.map(|parent| (pid, parent)));
    }
    let mut found = vec![rustix::process::getpid().as_raw_nonzero().get()];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        let children =
            parents.iter().filter(|(pid, of)| *of == parent && !found.contains(pid)).map(|(pid, _)| *pid);
        let children: Vec<i32> = children.collect();
        found.extend(children);
        at += 1;
    }
    found.into_iter().skip(1).filter_map(Pid::from_raw).collect()
}
