//! The holder: a process of the agent that keeps descriptors open while no keeper runs (decision 97).
//!
//! A keeper gives it each pod's socket and process, and each socket on which it listens for units. When a keeper dies, all
//! of them stay open, and the next one gets them back. The holder reads none of them. Once it has been without a keeper for
//! its time, or once the agent's directory is gone, it ends: then pods end with their sockets.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::{
            fs::MetadataExt as _,
            net::{UnixListener, UnixStream},
        },
    },
    path::Path,
    process::ExitCode,
    time::{Duration, Instant},
};

use periapt_helper::DescriptorLines;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::sockopt::socket_peercred,
    process::geteuid,
};

mod words;

pub(crate) use words::{HOLDER_VERSION, HolderJob, HolderOrder, HolderWord, MAX_WORD, send};

/// The longest time without a keeper while nothing is held.
const EMPTY_TIME: Duration = Duration::from_secs(10);

/// The interval at which a holder without a keeper looks for the agent's directory.
const LOOKS_EVERY: Duration = Duration::from_secs(2);

/// The most descriptors that are held: two for each pod, and one for each port of each address.
const MAX_HELD: usize = 16 << 10;

/// Descriptors by their names, each with its note.
type Held = BTreeMap<String, (String, OwnedFd)>;

/// Runs the holder in this process, whose standard input is the socket on which it listens. `job` is the last argument of
/// its command line.
pub fn run_holder(job: &str) -> ExitCode {
    match hold(job) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Without a reader the message is of no use.
            let _ = writeln!(io::stderr(), "the holder of pods cannot go on: {error}");
            ExitCode::FAILURE
        }
    }
}

fn hold(job: &str) -> io::Result<()> {
    let HolderJob { socket, seconds } = serde_json::from_str(job)?;
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    hold_for(&listener, &socket, Duration::from_secs(seconds))
}

/// Holds what keepers hand over by connections to a listener, whose path is `socket`.
pub(crate) fn hold_for(listener: &UnixListener, socket: &Path, time: Duration) -> io::Result<()> {
    let place = place(socket)?;
    let is_there = || self::place(socket).is_ok_and(|found| found == place);
    let mut held = Held::new();
    loop {
        let time = if held.is_empty() { time.min(EMPTY_TIME) } else { time };
        let Some(keeper) = next_keeper(listener, time, is_there)? else { break };
        // An error is the end of this keeper.
        if matches!(serve(&keeper, &mut held), Ok(Over::Ordered)) {
            break;
        }
    }
    // Another holder may have this path by now.
    if is_there() {
        fs::remove_file(socket)?;
    }
    Ok(())
}

/// Returns the identity of the file at a path.
fn place(path: &Path) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

/// Waits for a keeper; none after some time, or once the socket's path is gone. Other users are refused.
fn next_keeper(
    listener: &UnixListener,
    time: Duration,
    is_there: impl Fn() -> bool + Copy,
) -> io::Result<Option<UnixStream>> {
    let began = Instant::now();
    loop {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() || !is_there() {
            return Ok(None);
        }
        let wait = left.min(LOOKS_EVERY);
        let wait = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: wait.subsec_nanos().into(),
        };
        match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&wait)) {
            Ok(0) | Err(Errno::INTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let (keeper, _) = listener.accept()?;
        if socket_peercred(&keeper)?.uid == geteuid() {
            return Ok(Some(keeper));
        }
    }
}

/// The end of a keeper's connection.
enum Over {
    /// The keeper is gone.
    Gone,
    /// The keeper has ordered the end.
    Ordered,
}

/// Tells a keeper what is held, and takes its orders until it is gone.
fn serve(keeper: &UnixStream, held: &mut Held) -> io::Result<Over> {
    for (name, (note, descriptor)) in &*held {
        let word = HolderWord::Holds { name: name.clone(), note: note.clone() };
        send(keeper, &word, Some(descriptor.as_fd()))?;
    }
    send(keeper, &HolderWord::Listed { version: HOLDER_VERSION, process: std::process::id() }, None)?;
    let mut lines = DescriptorLines::new(MAX_WORD);
    loop {
        while let Some(line) = lines.line()? {
            match serde_json::from_slice(&line)? {
                HolderOrder::Hold { name, note } => {
                    let descriptor = lines.descriptor();
                    let descriptor =
                        descriptor.ok_or_else(|| io::Error::other("an order came without its descriptor"))?;
                    if held.len() < MAX_HELD || held.contains_key(&name) {
                        held.insert(name, (note, descriptor));
                    }
                }
                HolderOrder::Release { name } => {
                    held.remove(&name);
                }
                HolderOrder::End => return Ok(Over::Ordered),
            }
        }
        match lines.receive(keeper) {
            Ok(0) => return Ok(Over::Gone),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
