//! A script, from its text to its exit code.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{
    Reply, Request, ScriptLimits, Stopped,
    interpreter::{self, Shell},
};

/// A script's text, with the variables, the host name and the bounds that it runs with.
#[derive(Debug, Clone)]
pub struct Script {
    /// The script's text.
    pub text: String,
    /// The first variables.
    pub environment: Vec<(String, String)>,
    /// The name that `hostname` prints.
    pub hostname: String,
    /// The bounds of its work, memory and output.
    pub limits: ScriptLimits,
}

/// The result of a script: its exit code and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptEnd {
    /// The exit code, or the bound that it exceeded.
    pub code: Result<u8, Stopped>,
    /// The bytes of its standard output.
    pub stdout: Vec<u8>,
    /// The bytes of its standard error.
    pub stderr: Vec<u8>,
}

/// The state of a script.
#[derive(Debug)]
pub enum ScriptProgress {
    /// The script waits for the answer to this request.
    Needs(Request),
    /// The script has ended.
    Ended(ScriptEnd),
}

/// A running script. Its caller alternates [`Self::advance`] and [`Self::answer`]. It does nothing by itself, and may
/// be dropped at any point.
pub struct Running {
    future: Pin<Box<dyn Future<Output = Result<u8, Stopped>> + Send>>,
    channel: Arc<RequestChannel>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Script {
    /// Starts the script at its first command. A syntax error ends it with exit code 2.
    pub fn start(self) -> Running {
        let channel = Arc::new(RequestChannel::default());
        let shell = Shell::new(&self, Arc::clone(&channel));
        let future = Box::pin(interpreter::run(shell, self.text));
        Running { future, channel }
    }
}

impl Running {
    /// Runs to the next request, or to the end.
    pub fn advance(&mut self) -> ScriptProgress {
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let mut state = self.channel.lock();
        let code = match (polled, state.request.take()) {
            (Poll::Pending, Some(request)) => return ScriptProgress::Needs(request),
            // It waits for answers alone, so the caller did not answer this request.
            (Poll::Pending, None) => Err(Stopped::Answer),
            (Poll::Ready(code), _) => code,
        };
        let (stdout, stderr) = (std::mem::take(&mut state.stdout), std::mem::take(&mut state.stderr));
        ScriptProgress::Ended(ScriptEnd { code, stdout, stderr })
    }

    /// Ends the script at this point, and returns its standard output and its standard error.
    pub fn give_up(self) -> (Vec<u8>, Vec<u8>) {
        let mut state = self.channel.lock();
        (std::mem::take(&mut state.stdout), std::mem::take(&mut state.stderr))
    }

    /// Answers the last request of [`Self::advance`].
    pub fn answer(&mut self, reply: Reply) {
        self.channel.lock().reply = Some(reply);
    }
}

/// The channel between a script and its caller. Both hold it, never at the same time.
#[derive(Debug, Default)]
pub(crate) struct RequestChannel {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    request: Option<Request>,
    reply: Option<Reply>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A standard stream of the whole script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl RequestChannel {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so the state is whole after a panic, too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
