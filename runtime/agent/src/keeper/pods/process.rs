//! The process of a pod.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream as Started, process::CommandExt as _},
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use periapt_helper::{DescriptorLines, send_beside};
use periapt_host_api::{
    container::PodState,
    notice::WorkloadNotice,
    pod::{DialOrder, MAX_REPORT_BYTES, OPENED, PodOrder, PodReport, PodStream},
};
use rustix::net::{Shutdown, shutdown};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
    time::timeout,
};

use super::{
    lock::PodLock,
    note::{HeldPlace, PodNote},
};
use crate::keeper::{held::PodHolder, process_handle::ProcessHandle, temporary::Temporary};

/// The time for a pod to end in order: that of its services, and the pod's own.
const ENDS_WITHIN: Duration = Duration::from_secs(45);

/// The time in which a pod says that a stream leads to its target: somewhat more than it gives its workload.
const OPENS_WITHIN: Duration = Duration::from_secs(6);

/// The time in which a pod of an earlier keeper answers the next one.
const TAKEN_WITHIN: Duration = Duration::from_secs(15);

/// The program of pods.
#[derive(Debug, Clone)]
pub(crate) struct PodProgram {
    /// The executable.
    pub(crate) path: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// Its whole environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
}

/// A pod that runs, started by this keeper or an earlier one. Dropping it kills the process, unless this keeper leaves its
/// pods to the next one.
#[derive(Debug)]
pub(crate) struct PodProcess {
    process: ProcessHandle,
    socket: UnixStream,
    reports: DescriptorLines,
    /// The id of its start, if an earlier keeper was told of it: this one's first report.
    taken: Option<String>,
    /// Its place at the holder; none if it ends with this keeper.
    place: Option<HeldPlace>,
    /// The files of the pod, which go with it.
    files: Option<Temporary>,
}

/// The start of a pod's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PodOrigin {
    /// This keeper started it.
    Started,
    /// An earlier keeper started it, and this one took it over.
    TakenOver,
}

/// A report of a pod, with what came beside it.
#[derive(Debug)]
pub(crate) enum PodEvent {
    /// The pod listens.
    Ready {
        /// The id of this start.
        boot_id: String,
        /// The parts of the confinement that the host lacks, as one line; empty if it has all, and from a pod of an earlier
        /// keeper.
        lacks: String,
    },
    /// The pod cannot begin, for this reason.
    Failed(String),
    /// A workload asks for a connection, and waits for an answer on this end of a stream.
    Dial(DialOrder, OwnedFd),
    /// Something of this number happened that the charm is to be told of.
    Notice(u64, WorkloadNotice),
    /// The state of services and checks.
    State(PodState),
    /// A service ended by itself.
    ServiceEnded {
        /// The service.
        service: String,
        /// The reason in words.
        reason: String,
    },
}

impl PodProgram {
    /// Starts a pod, whose standard input is a socket to this process, and which holds its lock, if it has one, until it
    /// ends. `files` go with it. The holder keeps one that has a note for the next keeper.
    pub(super) fn start(
        &self,
        more: &[OsString],
        lock: Option<PodLock>,
        files: Option<Temporary>,
        kept: Option<(&PodHolder, PodNote)>,
    ) -> io::Result<PodProcess> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .args(more)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            // A pod prints nothing, so its lock is passed as its standard output, which no workload gets.
            .stdout(lock.map_or_else(Stdio::null, |lock| lock.into_descriptor().into()))
            .stderr(Stdio::inherit())
            .process_group(0)
            .spawn()?;
        let process = ProcessHandle::of_child(child)?;
        let place = kept.map(|(holder, note)| {
            let place = HeldPlace::new(holder, &note);
            place.hold(&note, process.descriptor(), &ours);
            place
        });
        PodProcess::new(process, ours, place, files)
    }
}

impl PodProcess {
    fn new(
        process: ProcessHandle,
        socket: Started,
        place: Option<HeldPlace>,
        files: Option<Temporary>,
    ) -> io::Result<Self> {
        let socket = match UnixStream::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => {
                process.kill_and_forget();
                return Err(error);
            }
        };
        let reports = DescriptorLines::new(MAX_REPORT_BYTES);
        Ok(Self { process, socket, reports, taken: None, place, files })
    }

    /// Takes a pod that an earlier keeper has started.
    pub(super) fn of_earlier(
        process: ProcessHandle,
        socket: Started,
        place: HeldPlace,
        files: Option<Temporary>,
    ) -> io::Result<Self> {
        // The earlier keeper has set it, but for a socket that came without its pod.
        socket.set_nonblocking(true)?;
        Self::new(process, socket, Some(place), files)
    }

    /// Returns who started it. It is known until the first report is read.
    pub(super) fn origin(&self) -> PodOrigin {
        match self.taken {
            Some(_) => PodOrigin::TakenOver,
            None => PodOrigin::Started,
        }
    }

    /// Returns the directory of the pod's files.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.files.as_ref().map(Temporary::path)
    }

    /// Has a pod of an earlier keeper report all again. Returns the id of its start, which is its next report, too. The
    /// error says in words why the pod cannot be taken over.
    pub(super) async fn take_over(&mut self) -> Result<String, String> {
        let taken = async {
            // The descriptor beside the order has no meaning.
            let (_, beside) = Started::pair()?;
            self.order(PodOrder::Repeat, &beside).await?;
            self.skip_to_ready().await
        };
        let boot_id = match timeout(TAKEN_WITHIN, taken).await {
            Ok(Ok(Some(boot_id))) => boot_id,
            Ok(Ok(None)) => return Err("it ends".to_owned()),
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("it does not answer".to_owned()),
        };
        self.taken = Some(boot_id.clone());
        Ok(boot_id)
    }

    /// Drops what the pod reported to the keeper before, of which that one may have read a part. Returns the id of the start;
    /// none if the pod has closed its socket.
    async fn skip_to_ready(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(line) = self.reports.line()? {
                match serde_json::from_slice(&line) {
                    Ok(PodReport::Ready { boot_id, .. }) => return Ok(Some(boot_id)),
                    // Its stream ends, which refuses the call.
                    Ok(PodReport::Dial(_)) => drop(self.reports.descriptor()),
                    // The rest of a line whose beginning the keeper before has read, or an older report.
                    Ok(_) | Err(_) => {}
                }
                continue;
            }
            let (socket, reports) = (&self.socket, &mut self.reports);
            if socket.async_io(Interest::READABLE, || reports.receive(socket)).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Returns the id of the process; none once it has ended.
    pub(super) fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Waits for the next report; none once the pod has closed its socket. Cancellation loses no report.
    pub(crate) async fn report(&mut self) -> io::Result<Option<PodEvent>> {
        if let Some(boot_id) = self.taken.take() {
            return Ok(Some(PodEvent::Ready { boot_id, lacks: String::new() }));
        }
        let (socket, reports) = (&self.socket, &mut self.reports);
        loop {
            if let Some(line) = reports.line()? {
                return match serde_json::from_slice(&line)? {
                    PodReport::Ready { boot_id, lacks } => Ok(Some(PodEvent::Ready { boot_id, lacks })),
                    PodReport::Failed { reason } => Ok(Some(PodEvent::Failed(reason))),
                    PodReport::Notice { number, notice } => Ok(Some(PodEvent::Notice(number, notice))),
                    PodReport::State(state) => Ok(Some(PodEvent::State(state))),
                    PodReport::ServiceEnded { service, reason } => {
                        Ok(Some(PodEvent::ServiceEnded { service, reason }))
                    }
                    PodReport::Dial(order) => {
                        let stream = reports.descriptor();
                        let stream =
                            stream.ok_or_else(|| io::Error::other("a call came without its stream"))?;
                        Ok(Some(PodEvent::Dial(order, stream)))
                    }
                };
            }
            if socket.async_io(Interest::READABLE, || reports.receive(socket)).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Waits for the end of a process that has closed its socket, kills it after a while, and returns how it ended.
    pub(crate) async fn gone(&mut self) -> String {
        let how = self.process.ends_within(ENDS_WITHIN, || {}).await;
        self.release();
        how
    }

    /// Kills the process, and waits until it has ended.
    pub(crate) async fn kill(&mut self) {
        self.process.kill();
        self.process.ended().await;
        self.release();
    }

    /// Sends the pod one end of a stream, and returns the other end, on which it first says whether the stream leads
    /// anywhere.
    pub(crate) async fn send(&self, target: PodStream) -> io::Result<Started> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        self.order(PodOrder::Open(target), &theirs).await?;
        Ok(ours)
    }

    async fn order(&self, order: PodOrder, beside: &impl AsFd) -> io::Result<()> {
        let (socket, bytes) = (&self.socket, order.to_bytes());
        // As few bytes are sent wholly or not at all.
        let send = || send_beside(socket, &bytes, beside.as_fd());
        timeout(OPENS_WITHIN, socket.async_io(Interest::WRITABLE, send)).await??;
        Ok(())
    }

    /// Ends the pod in order, and kills it after a while. A keeper that leaves its pods to the next one ends none.
    pub(crate) async fn end(&mut self) {
        if self.is_left() || self.process.has_ended() {
            return;
        }
        // The holder's duplicate ends, too.
        if let Err(error) = shutdown(&self.socket, Shutdown::Both) {
            tracing::debug!(%error, "a pod has closed its socket already");
        }
        let late = || tracing::warn!("a pod does not end, and is killed");
        self.process.ends_within(ENDS_WITHIN, late).await;
        self.release();
    }

    fn is_left(&self) -> bool {
        self.place.as_ref().is_some_and(HeldPlace::is_left)
    }

    fn release(&self) {
        if let Some(place) = &self.place {
            place.release();
        }
    }
}

impl Drop for PodProcess {
    fn drop(&mut self) {
        if self.is_left() {
            if let Some(files) = self.files.take() {
                files.keep();
            }
        } else if !self.process.has_ended() {
            self.process.kill_and_forget();
        }
    }
}

#[cfg(test)]
impl PodProcess {
    /// Returns true if the process has ended, and its end was waited for.
    pub(super) fn end_is_known(&self) -> bool {
        self.process.has_ended()
    }

    /// Returns a descriptor of the process.
    pub(super) fn process_descriptor(&self) -> OwnedFd {
        self.process.descriptor().try_clone().unwrap()
    }
}

/// Waits for the pod's word that a stream leads to its target, and returns the stream.
pub(crate) async fn opened(stream: Started) -> Result<Started, String> {
    let nobody = |reason: &dyn std::fmt::Display| format!("nobody listens: {reason}");
    let mut stream = UnixStream::from_std(stream).map_err(|error| nobody(&error))?;
    let mut word = [0];
    match timeout(OPENS_WITHIN, stream.read_exact(&mut word)).await {
        Ok(Ok(_)) if word == [OPENED] => stream.into_std().map_err(|error| nobody(&error)),
        Ok(Ok(_)) => Err(nobody(&"the connection was refused")),
        Ok(Err(_)) => Err(nobody(&"the pod has ended")),
        Err(_) => Err(nobody(&"the pod does not answer")),
    }
}
