//! The process of a pod.

use std::{
    ffi::OsString,
    io::{self, IoSlice},
    mem::MaybeUninit,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as Started,
    },
    path::PathBuf,
    process::Stdio,
    time::Duration,
};

use periapt_host_api::pod::{MAX_REPORT_BYTES, OPENED, PodReport, PodStream};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader, Interest},
    net::{UnixStream, unix::OwnedReadHalf, unix::OwnedWriteHalf},
    process::{Child, Command},
    time::timeout,
};

use crate::keeper::process::how_it_ends;

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
    reports: BufReader<OwnedReadHalf>,
    line: Vec<u8>,
    streams: OwnedWriteHalf,
}

impl PodProgram {
    /// Starts a pod, whose standard input is a socket to this process.
    pub(crate) fn start(&self) -> io::Result<PodProcess> {
        let (ours, theirs) = Started::pair()?;
        ours.set_nonblocking(true)?;
        let child = Command::new(&self.path)
            .args(&self.arguments)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let (reports, streams) = UnixStream::from_std(ours)?.into_split();
        Ok(PodProcess { child, reports: BufReader::new(reports), line: Vec::new(), streams })
    }
}

impl PodProcess {
    /// Waits for the next report; none once the pod has closed its socket. Cancellation loses no report.
    pub(crate) async fn report(&mut self) -> io::Result<Option<PodReport>> {
        loop {
            let buffered = self.reports.fill_buf().await?;
            if buffered.is_empty() {
                return Ok(None);
            }
            let end = buffered.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(buffered.len(), |end| end + 1);
            self.line.extend_from_slice(buffered.get(..taken).unwrap_or_default());
            self.reports.consume(taken);
            if self.line.len() > MAX_REPORT_BYTES {
                return Err(io::Error::other("a report of the pod is too long"));
            }
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(serde_json::from_slice(&line)?));
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
        let socket: &UnixStream = self.streams.as_ref();
        let bytes = target.to_bytes();
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut beside = SendAncillaryBuffer::new(&mut space);
            let descriptors = [theirs.as_fd()];
            if !beside.push(SendAncillaryMessage::ScmRights(&descriptors)) {
                return Err(io::Error::other("there is no room for the descriptor"));
            }
            // As few bytes are sent wholly or not at all.
            Ok(sendmsg(socket, &[IoSlice::new(&bytes)], &mut beside, SendFlags::NOSIGNAL)?)
        };
        timeout(OPENS_WITHIN, socket.async_io(Interest::WRITABLE, send)).await??;
        Ok(ours)
    }

    /// Ends the pod in order, and kills it after a while.
    pub(crate) async fn end(mut self) {
        drop((self.reports, self.streams));
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
