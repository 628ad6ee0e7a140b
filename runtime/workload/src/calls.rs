//! Requests of the workload to other units, over connections that its pod's keeper makes.

use std::{
    io,
    os::{
        fd::{AsFd as _, FromRawFd as _, OwnedFd, RawFd},
        unix::net::UnixStream as Started,
    },
    sync::Arc,
};

use http::uri::Scheme;
use periapt_helper::send_beside;
use periapt_host_api::pod::{DialOrder, MAX_HOST_BYTES, OPENED};
use periapt_sandbox::{
    BoxFuture,
    workload::{Outbound, OutboundConnection, OutboundRefused, OutboundTarget},
};
use tokio::{
    io::{AsyncReadExt as _, Interest},
    net::UnixStream,
};

/// The way to other units: a socket to the pod, on which the process sends one end of a stream with each call. Encrypted
/// connections are refused, because no unit has a certificate.
#[derive(Debug)]
pub(crate) struct PodOutbound(Arc<UnixStream>);

/// The result of a call.
type CallResult = Result<Box<dyn OutboundConnection>, OutboundRefused>;

impl PodOutbound {
    /// Takes the socket that the pod left open for this process. A runtime must have been entered.
    pub(crate) fn take(descriptor: RawFd) -> io::Result<Self> {
        if descriptor <= 2 {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // SAFETY: the pod left it open for this process under this number, and nothing else here uses it.
        #[expect(unsafe_code, reason = "a number of an inherited descriptor becomes an owned one")]
        let socket = Started::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
        socket.set_nonblocking(true)?;
        Ok(Self(Arc::new(UnixStream::from_std(socket)?)))
    }
}

impl Outbound for PodOutbound {
    fn connect(&self, target: OutboundTarget) -> BoxFuture<'static, CallResult> {
        let socket = Arc::clone(&self.0);
        Box::pin(async move { call(&socket, target).await })
    }
}

async fn call(socket: &UnixStream, target: OutboundTarget) -> CallResult {
    let OutboundTarget { scheme, host, port } = target;
    if scheme != Scheme::HTTP || host.len() > MAX_HOST_BYTES {
        return Err(OutboundRefused::Denied);
    }
    let mut line = serde_json::to_vec(&DialOrder { host, port }).map_err(io::Error::from)?;
    line.push(b'\n');
    let (mut stream, theirs) = UnixStream::pair()?;
    let sent = socket.async_io(Interest::WRITABLE, || send_beside(socket, &line, theirs.as_fd())).await?;
    if sent != line.len() {
        return Err(io::Error::from(io::ErrorKind::WriteZero).into());
    }
    drop(theirs);
    let mut word = [0];
    stream.read_exact(&mut word).await?;
    match word {
        [OPENED] => Ok(Box::new(stream)),
        _ => Err(OutboundRefused::Denied),
    }
}
