//! The channel between a script and its caller.

use std::task::Poll;

use parking_lot::{Mutex, MutexGuard};

use crate::{Reply, Request};

/// The channel between a script and its caller. Both hold it, never at the same time.
#[derive(Debug, Default)]
pub(crate) struct RequestChannel {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) request: Option<Request>,
    pub(crate) reply: Option<Reply>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A standard stream of the whole script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl RequestChannel {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so the state is whole after a panic, too.
        self.state.lock()
    }

    /// Sends a request, and waits for its answer.
    pub(crate) async fn ask(&self, request: Request) -> Reply {
        {
            let mut state = self.lock();
            state.reply = None;
            state.request = Some(request);
        }
        std::future::poll_fn(|_| match self.lock().reply.take() {
            Some(reply) => Poll::Ready(reply),
            None => Poll::Pending,
        })
        .await
    }

    /// Writes to a standard stream of the script.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.lock();
        match stream {
            Stream::Stdout => state.stdout.extend_from_slice(bytes),
            Stream::Stderr => state.stderr.extend_from_slice(bytes),
        }
    }
}
