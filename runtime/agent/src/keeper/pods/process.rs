//! The process of a pod.

use std::{
    ffi::OsString,
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as Started,
    },
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use periapt_helper::{DescriptorLines, send_beside};
use periapt_host_api::{
    container::PodState,
    notice::WorkloadNotice,
    pod::{DialOrder, MAX_REPORT_BYTES, OPENED, PodReport, PodStream},
};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use crate::keeper::{process::how_it_ends, temporary::Temporary};

/// The time for a pod to end in order: that of its services, and the pod's own.
const ENDS_WITHIN: Duration = Duration::from_secs(45);

/// The time in which a pod says that a stream leads to its target: somewhat more than it gives its workload.
const OPENS_WITHIN: Duration = Duration::from_secs(6);

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

/// A started pod.
#[derive(Debug)]
pub(crate) struct PodProcess {
    child: Child,
    socket: UnixStream,
    reports: DescriptorLines,
    /// The files of the pod, which go with it.
    _files: Option<Temporary>,
}

/// A report of a pod, with what came beside it.
#[derive(Debug)]
pub(crate) enum PodEvent {
    /// The pod listens, with the id of this start.
    Ready(String),
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
    /// Starts a pod, whose standard input is a socket to this process. `files` go with it.
    pub(super) fn start(&self, more: &[OsString], files: Option<Temporary>) -> io::Result<PodProcess> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .args(more)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let socket = UnixStream::from_std(ours)?;
        Ok(PodProcess { child, socket, reports: DescriptorLines::new(MAX_REPORT_BYTES), _files: files })
    }
}

impl PodProcess {
    /// Waits for the next report; none once the pod has closed its socket. Cancellation loses no report.
    pub(crate) async fn report(&mut self) -> io::Result<Option<PodEvent>> {
        let (socket, reports) = (&self.socket, &mut self.reports);
        loop {
            if let Some(line) = reports.line()? {
                return match serde_json::from_slice(&line)? {
                    PodReport::Ready { boot_id } => Ok(Some(PodEvent::Ready(boot_id))),
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
        how_it_ends(&mut self.child, ENDS_WITHIN).await
    }

    /// Kills the process, and waits until it has ended.
    pub(crate) async fn kill(&mut self) {
        // An error means that it has ended.
        let _ = self.child.kill().await;
    }

    /// Sends the pod one end of a stream, and returns the other end, on which it first says whether the stream leads
    /// anywhere.
    pub(crate) async fn send(&self, target: PodStream) -> io::Result<Started> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        let socket = &self.socket;
        let bytes = target.to_bytes();
        // As few bytes are sent wholly or not at all.
        let send = || send_beside(socket, &bytes, theirs.as_fd());
        timeout(OPENS_WITHIN, socket.async_io(Interest::WRITABLE, send)).await??;
        Ok(ours)
    }

    /// Ends the pod in order, and kills it after a while.
    pub(crate) async fn end(mut self) {
        drop(self.socket);
        if timeout(ENDS_WITHIN, self.child.wait()).await.is_err() {
            tracing::warn!("a pod does not end, and is killed");
            if let Err(error) = self.child.kill().await {
                tracing::warn!(%error, "a pod could not be killed");
            }
        }
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
