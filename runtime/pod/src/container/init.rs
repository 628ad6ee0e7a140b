//! The init of a container: the first process in its namespace of processes.
//!
//! It is a copy of the pod's process, not another program: no file of the image is run as init, and no file of the host
//! is needed. It starts, signals and reaps processes by order, and reaps orphans. It ends all others once the pod's process
//! has gone, however that ended, and lets go of the lock once they are gone.

use std::{
    io,
    os::{
        fd::{AsFd as _, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    thread,
    time::Duration,
};

use periapt_pebble::{Account, ProcessId, Spawn, Stdio};
use rustix::{
    event::{PollFd, PollFlags, poll},
    fs::{Mode, OFlags, open},
    process::{DumpableBehavior, WaitOptions, chdir, set_dumpable_behavior, wait},
};

use super::{
    calls,
    gap::Gap,
    options::ContainerUser,
    order::Order,
    privileges, stage, syscalls,
    wire::{self, FromInit, NewProcess, ToInit},
};
use crate::driver::{Driver as _, Plain, Streams, accounts::Accounts};

/// The pause between signals to processes that are to end.
const KILLED_EVERY: Duration = Duration::from_millis(50);

/// Runs the init, which holds the lock. It never returns: what called it is the copy of another process.
pub(super) fn run(order: &Order, socket: &UnixStream, lock: Option<BorrowedFd<'_>>) -> ! {
    let code = match begin(order, socket, lock).and_then(|gaps| serve(order, socket, gaps)) {
        Ok(()) => 0,
        Err(reason) => {
            let _ = wire::send(socket, &FromInit::Failed(reason), &[]);
            1
        }
    };
    end_others();
    calls::exit(code)
}

/// Ends all other processes of the namespace, and waits for them. The kernel would end them with this process, but after it
/// has closed its descriptors, and the lock with them.
fn end_others() {
    // The init has the right over all of them (`privileges::WORKLOAD`). What fails otherwise is that this process is no init.
    if calls::kill_all_others().is_err_and(|error| error.raw_os_error() != Some(libc::ESRCH)) {
        return;
    }
    // A process of this namespace is a child of this one, or becomes one when its parent ends.
    while matches!(wait(WaitOptions::empty()), Ok(_) | Err(rustix::io::Errno::INTR)) {
        let _ = calls::kill_all_others();
    }
}

/// Mounts `/proc`, and confines this process once it has its root. Returns what could not be confined.
fn begin(order: &Order, socket: &UnixStream, lock: Option<BorrowedFd<'_>>) -> Result<Vec<Gap>, String> {
    let error = |error: rustix::io::Errno| error.to_string();
    // The end of the pod's process is the end of the socket.
    calls::close_others(&[socket.as_fd()].into_iter().chain(lock).collect::<Vec<_>>())
        .map_err(|error| error.to_string())?;
    entered(socket)?;
    stage::processes()?;
    wire::send(socket, &FromInit::Mounted, &[]).map_err(|error| error.to_string())?;
    entered(socket)?;
    chdir("/").map_err(error)?;
    let mut gaps = Vec::new();
    if let Err(error) = calls::leave_cgroups() {
        gaps.push(Gap::new("names of cgroups", error.to_string(), ""));
    }
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(error)?;
    calls::replace_standard_streams(null.as_fd()).map_err(|error| error.to_string())?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(error)?;
    privileges::limit(order.limits.processes).map_err(|error| error.to_string())?;
    privileges::keep(privileges::WORKLOAD).map_err(|error| format!("cannot give up rights: {error}"))?;
    if let Err(reason) = privileges::write_below_root_alone() {
        let reason = format!("writes are not denied by Landlock: {reason}");
        let remedy = "run Linux 5.13 or later with landlock among the modules of its parameter lsm";
        gaps.push(Gap::new("files of the host", reason, remedy));
    }
    if let Err(reason) = syscalls::confine() {
        gaps.push(Gap::new("system calls", reason, ""));
    }
    Ok(gaps)
}

/// Ends all other processes once the pod's process has gone, also while the init hangs in the start of a process that
/// another one has stopped: until it ends, too.
fn end_with(socket: &UnixStream) {
    loop {
        // An end is told without being asked for.
        let mut event = PollFd::new(socket, PollFlags::empty());
        match poll(std::slice::from_mut(&mut event), None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
        if event.revents().contains(PollFlags::HUP) {
            break;
        }
    }
    loop {
        let _ = calls::kill_all_others();
        thread::sleep(KILLED_EVERY);
    }
}

/// Waits for the word that the next part may begin.
fn entered(socket: &UnixStream) -> Result<(), String> {
    match wire::receive::<ToInit>(socket) {
        Ok(Some((ToInit::Enter, _))) => Ok(()),
        Ok(_) => Err("the pod's process has ended".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Carries out orders until the pod's process has gone.
fn serve(order: &Order, socket: &UnixStream, gaps: Vec<Gap>) -> Result<(), String> {
    let failed = |error: io::Error| error.to_string();
    let ended: OwnedFd = calls::ended_children().map_err(failed)?;
    let watched = socket.try_clone().map_err(failed)?;
    // It starts with the signals of ended children blocked: one that it took would not be told of.
    thread::Builder::new().name("end".to_owned()).spawn(move || end_with(&watched)).map_err(failed)?;
    let mut processes = Plain::new();
    wire::send(socket, &FromInit::Ready(gaps), &[]).map_err(failed)?;
    loop {
        let mut events =
            [PollFd::new(socket, PollFlags::IN), PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN)];
        match poll(&mut events, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.to_string()),
        }
        let [orders, ends] = events.map(|event| !event.revents().is_empty());
        if ends {
            // One record tells of any number of ends.
            let mut record = [0; 128];
            let _ = rustix::io::read(&ended, &mut record);
            for (process, code) in processes.exits() {
                wire::send(socket, &FromInit::Exited(process.0, code), &[]).map_err(failed)?;
            }
        }
        if !orders {
            continue;
        }
        match wire::receive::<ToInit>(socket).map_err(failed)? {
            None => return Ok(()),
            Some((ToInit::Enter, _)) => {}
            Some((ToInit::Signal(process, signal), _)) => processes.send(ProcessId(process), signal),
            Some((ToInit::Spawn(new), streams)) => {
                let process = new.process;
                let answer = match started(&mut processes, *new, streams, order) {
                    Ok(()) => FromInit::Spawned(process),
                    Err(reason) => FromInit::Refused(process, reason),
                };
                wire::send(socket, &answer, &[]).map_err(failed)?;
            }
        }
    }
}

fn started(
    processes: &mut Plain,
    new: NewProcess,
    streams: Vec<OwnedFd>,
    order: &Order,
) -> Result<(), String> {
    let [stdin, stdout, stderr] =
        <[OwnedFd; 3]>::try_from(streams).map_err(|_| "a process needs three streams".to_owned())?;
    let mut variables = order.environment.clone();
    variables.extend(new.environment);
    let mut account =
        Account { user: new.user, user_id: new.user_id, group: new.group, group_id: new.group_id };
    if let Some(ContainerUser { user_id, group_id }) = order.user.filter(|_| account.is_own()) {
        account = Account { user_id: Some(user_id), group_id: Some(group_id), ..account };
    }
    let spawn = Spawn {
        command: new.command,
        environment: variables,
        working_dir: new.working_dir,
        account,
        stdio: if new.is_service { Stdio::Log } else { Stdio::Tail },
    };
    if !order.has_users
        && let Some(account) = Accounts::read(Path::new("/")).resolve(&spawn.account)?
        && (account.user_id, account.group_id) != (0, 0)
    {
        return Err(format!(
            "the container has root alone and no user {:?}: this host gives it no range of users",
            account.name
        ));
    }
    let streams = Streams { stdin, stdout, stderr, is_terminal: new.is_terminal };
    processes.spawn(ProcessId(new.process), &spawn, streams)
}
