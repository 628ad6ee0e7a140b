//! Connections whose peers read nothing.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

/// The time for which a peer may read nothing of what it was sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(60);

/// The permission for the peer of one connection to read nothing for as long as it likes. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub struct MayPause(Arc<AtomicBool>);

impl MayPause {
    /// Lets the connection wait for its peer from now on.
    pub fn allow(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A connection that fails when its peer reads nothing for too long.
#[derive(Debug)]
pub struct Stalling<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    may_pause: MayPause,
}

impl<S> Stalling<S> {
    /// Watches the writes of a connection.
    pub fn new(stream: S) -> Self {
        Self { stream, stalled: None, may_pause: MayPause::default() }
    }

    /// Returns the permission that its peer does not have yet.
    pub fn may_pause(&self) -> MayPause {
        self.may_pause.clone()
    }
}

impl<S: Unpin> Stalling<S> {
    /// Counts the time of a write that does not go on.
    fn watch<T>(&mut self, cx: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() || self.may_pause.0.load(Ordering::Relaxed) {
            self.stalled = None;
            return poll;
        }
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(WRITE_TIMEOUT)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Stalling<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Stalling<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let poll = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, poll)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_flush(cx);
        self.watch(cx, poll)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.watch(cx, poll)
    }
}

#[cfg(test)]
mod tests {
    use tokio::{
        io::{AsyncWriteExt as _, duplex},
        time::timeout,
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_reads_nothing_is_waited_for_if_it_may_pause() {
        let (_peer, stream) = duplex(1);
        let mut strict = Stalling::new(stream);
        let error = strict.write_all(b"two").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        let (_peer, stream) = duplex(1);
        let mut patient = Stalling::new(stream);
        patient.may_pause().allow();
        assert!(timeout(100 * WRITE_TIMEOUT, patient.write_all(b"two")).await.is_err(), "it waits");
    }
}
