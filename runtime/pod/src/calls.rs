//! Calls of the pod's workloads to other units, and those of the pod for them. Each comes on a socket, beside one end of a
//! stream, and goes to the keeper as it came: the pod answers none.

use std::{
    io,
    os::{
        fd::{AsFd as _, OwnedFd},
        unix::net::UnixStream as Started,
    },
    time::Duration,
};

use periapt_helper::{DescriptorLines, send_beside};
use periapt_host_api::pod::{DialOrder, MAX_REPORT_BYTES, OPENED};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};

/// The sockets on which workloads call, one for each process.
pub(crate) type CallSockets = mpsc::UnboundedReceiver<OwnedFd>;

/// A call, with the stream on which the workload waits for the answer. Dropping it refuses the call.
#[derive(Debug)]
pub(crate) struct WorkloadCall {
    pub(crate) order: DialOrder,
    pub(crate) stream: OwnedFd,
}

/// Asks the keeper for a connection, or about a name, by a socket whose other end is taken.
///
/// # Errors
/// `ConnectionRefused` if the keeper refuses; and others if it does not answer.
pub(crate) async fn ask(order: &DialOrder, calls: &UnixStream, within: Duration) -> io::Result<UnixStream> {
    let (ours, theirs) = Started::pair()?;
    ours.set_nonblocking(true)?;
    let mut ours = UnixStream::from_std(ours)?;
    let mut line = serde_json::to_vec(order)?;
    line.push(b'\n');
    let send = || send_beside(calls, &line, theirs.as_fd());
    // As few bytes are sent wholly or not at all.
    if calls.async_io(Interest::WRITABLE, send).await? != line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    drop(theirs);
    match timeout(within, ours.read_u8()).await.unwrap_or_else(|late| Err(late.into()))? {
        OPENED => Ok(ours),
        _ => Err(io::ErrorKind::ConnectionRefused.into()),
    }
}

/// Takes the calls of all sockets for as long as it runs.
pub(crate) async fn take_all(mut sockets: CallSockets, calls: mpsc::Sender<WorkloadCall>) {
    let mut taking = JoinSet::new();
    loop {
        tokio::select! {
            socket = sockets.recv() => match socket {
                Some(socket) => {
                    let calls = calls.clone();
                    taking.spawn(async move {
                        if let Err(error) = take(socket, &calls).await {
                            tracing::warn!("a workload's calls are not taken any more: {error}");
                        }
                    });
                }
                None => return,
            },
            Some(_) = taking.join_next() => {}
        }
    }
}

/// Takes the calls of one socket until it ends. A workload that calls faster than the keeper reads waits.
async fn take(socket: OwnedFd, calls: &mpsc::Sender<WorkloadCall>) -> io::Result<()> {
    let socket = Started::from(socket);
    socket.set_nonblocking(true)?;
    let socket = UnixStream::from_std(socket)?;
    let mut lines = DescriptorLines::new(MAX_REPORT_BYTES / 2);
    loop {
        while let Some(line) = lines.line()? {
            let order: DialOrder = serde_json::from_slice(&line)?;
            let stream = lines.descriptor();
            let stream = stream.ok_or_else(|| io::Error::other("a call came without its stream"))?;
            if calls.send(WorkloadCall { order, stream }).await.is_err() {
                return Ok(());
            }
        }
        if socket.async_io(Interest::READABLE, || lines.receive(&socket)).await? == 0 {
            return Ok(());
        }
    }
}
