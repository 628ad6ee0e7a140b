//! The questions of the gate to the pod's keeper.

use std::{
    io,
    os::{fd::AsFd as _, unix::net::UnixStream as Started},
    time::Duration,
};

use periapt_helper::send_beside;
use periapt_host_api::pod::{DialOrder, OPENED};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
    time::timeout,
};

/// Asks the keeper for a connection, or about a name.
///
/// # Errors
/// `ConnectionRefused` if the keeper refuses; and others if it does not answer.
pub(super) async fn ask(order: &DialOrder, calls: &UnixStream, within: Duration) -> io::Result<UnixStream> {
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
