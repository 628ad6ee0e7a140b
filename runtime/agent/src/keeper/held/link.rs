//! The connection to the holder.

use std::{
    fs::{self, File},
    io,
    os::{
        fd::{AsFd, AsRawFd as _, OwnedFd},
        unix::{
            fs::{OpenOptionsExt as _, PermissionsExt as _},
            net::{UnixListener, UnixStream},
            process::CommandExt as _,
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use periapt_helper::{DescriptorLines, Program};

use crate::{
    holder::{HOLDER_VERSION, HolderJob, HolderOrder, HolderWord, MAX_WORD, send},
    keeper::process_handle::ProcessHandle,
};

/// The name of the holder's socket in the agent's directory.
const SOCKET: &str = "holder.sock";

/// The time in which the holder takes an order, or says what it holds. It does nothing else.
const ANSWERS_WITHIN: Duration = Duration::from_secs(10);

/// The attempts to find or start a holder: one that is found may be ending.
const TRIES: u32 = 5;

/// The way to the holder. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodHolder(Arc<Mutex<State>>);

#[derive(Debug, Default)]
enum State {
    /// The holder takes orders.
    Linked { socket: UnixStream, process: Box<ProcessHandle> },
    /// There is none.
    #[default]
    Absent,
    /// This keeper has left all to the next one.
    Left,
}

/// A connection to a holder, and its process.
#[derive(Debug)]
pub(crate) struct HolderLink {
    socket: UnixStream,
    process: u32,
}

/// A descriptor that an earlier keeper handed over.
#[derive(Debug)]
pub(crate) struct HeldItem {
    pub(crate) name: String,
    pub(crate) note: String,
    pub(crate) descriptor: OwnedFd,
}

impl PodHolder {
    /// Takes a connection.
    pub(crate) fn new(link: HolderLink) -> io::Result<Self> {
        let HolderLink { socket, process } = link;
        let process = Box::new(ProcessHandle::of(process)?);
        Ok(Self(Arc::new(Mutex::new(State::Linked { socket, process }))))
    }

    /// Hands a descriptor over, in the place of the one with the same name. Without a holder it does nothing.
    pub(crate) fn hold(&self, name: &str, note: &str, descriptor: impl AsFd) {
        let order = HolderOrder::Hold { name: name.to_owned(), note: note.to_owned() };
        self.order(&order, Some(descriptor.as_fd()));
    }

    /// Has the holder close a descriptor. A keeper that leaves all to the next one closes none.
    pub(crate) fn release(&self, name: &str) {
        self.order(&HolderOrder::Release { name: name.to_owned() }, None);
    }

    fn order(&self, order: &HolderOrder, descriptor: Option<std::os::fd::BorrowedFd<'_>>) {
        let mut state = self.0.lock();
        let State::Linked { socket, .. } = &*state else { return };
        if let Err(error) = send(socket, order, descriptor) {
            tracing::error!(%error, "the holder of pods is lost: from now on, pods end with this agent");
            *state = State::Absent;
        }
    }

    /// Leaves all that is held to the next keeper. Nothing is released from now on.
    pub(crate) fn leave(&self) {
        *self.0.lock() = State::Left;
    }

    /// Returns true once all was left to the next keeper.
    pub(crate) fn has_left(&self) -> bool {
        matches!(&*self.0.lock(), State::Left)
    }

    /// Ends the holder, and waits until its process has ended.
    pub(crate) async fn end(&self, within: Duration) {
        let state = std::mem::take(&mut *self.0.lock());
        let State::Linked { socket, mut process } = state else { return };
        if let Err(error) = send(&socket, &HolderOrder::End, None) {
            tracing::debug!(%error, "the holder of pods cannot be told to end");
        }
        let late = || tracing::warn!("the holder of pods does not end, and is killed");
        process.ends_within(within, late).await;
    }
}

/// Returns the path of the socket, which is short wherever the directory is.
fn path_in(directory: &File) -> PathBuf {
    format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd()).into()
}

fn opened(root: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_PATH | libc::O_DIRECTORY).open(root)
}

/// Connects to the holder of an agent's directory, or starts one. Returns what it holds, too.
pub(crate) fn open_holder(
    root: &Path,
    program: &Program,
    time: Duration,
) -> io::Result<(HolderLink, Vec<HeldItem>)> {
    for _ in 0..TRIES {
        match find_holder(root)? {
            Some(found) => return Ok(found),
            None => start(root, program, time)?,
        }
    }
    Err(io::Error::other("each one that was started has ended"))
}

/// Connects to the holder of an agent's directory; none if there is none.
///
/// # Errors
/// The kind is `InvalidData` if the holder speaks another version than this keeper does. It was killed then.
pub(crate) fn find_holder(root: &Path) -> io::Result<Option<(HolderLink, Vec<HeldItem>)>> {
    let directory = opened(root)?;
    let socket = match UnixStream::connect(path_in(&directory)) {
        Ok(socket) => socket,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => Ok(None),
                _ => Err(error),
            };
        }
    };
    socket.set_read_timeout(Some(ANSWERS_WITHIN))?;
    socket.set_write_timeout(Some(ANSWERS_WITHIN))?;
    let (mut lines, mut items) = (DescriptorLines::new(MAX_WORD), Vec::new());
    let unknown = || io::Error::new(io::ErrorKind::InvalidData, "it speaks otherwise");
    loop {
        while let Some(line) = lines.line()? {
            match serde_json::from_slice(&line).map_err(|_| unknown())? {
                HolderWord::Holds { name, note } => {
                    let descriptor = lines.descriptor().ok_or_else(unknown)?;
                    items.push(HeldItem { name, note, descriptor });
                }
                HolderWord::Listed { version: HOLDER_VERSION, process } => {
                    return Ok(Some((HolderLink { socket, process }, items)));
                }
                HolderWord::Listed { process, .. } => {
                    if let Some(pid) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) {
                        rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
                    }
                    return Err(unknown());
                }
            }
        }
        match lines.receive(&socket) {
            // It was ending.
            Ok(0) => return Ok(None),
            Ok(_) => {}
            Err(error) => match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::ConnectionReset => return Ok(None),
                _ => return Err(error),
            },
        }
    }
}

/// Starts a holder.
fn start(root: &Path, program: &Program, time: Duration) -> io::Result<()> {
    let directory = opened(root)?;
    let path = path_in(&directory);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    let job = HolderJob { socket: root.join(SOCKET), seconds: time.as_secs() };
    let mut child = Command::new(&program.path)
        .args(&program.arguments)
        .arg(serde_json::to_string(&job)?)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::from(OwnedFd::from(listener)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // A signal from the terminal goes to the keeper alone.
        .process_group(0)
        .spawn()?;
    // One that ends by itself is no zombie. A keeper that becomes another program has a child that it does not know.
    std::thread::Builder::new().name("holder".to_owned()).spawn(move || child.wait().is_ok())?;
    Ok(())
}
