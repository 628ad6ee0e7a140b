//! A script from its text to its exit code.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use crate::{
    Limits, Reply, Request, Stopped,
    interpreter::{self, Shell},
};

/// A script's text, with the variables, the host name and the bounds that it runs with.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its text.
    pub text: String,
    /// The variables that it begins with.
    pub environment: Vec<(String, String)>,
    /// The name that `hostname` prints.
    pub hostname: String,
    /// The bounds of its work, memory and output.
    pub limits: Limits,
}

/// The result of a script: its exit code and its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code; or why it was stopped.
    pub code: Result<u8, Stopped>,
    /// The bytes that it wrote to its standard output.
    pub stdout: Vec<u8>,
    /// The bytes that it wrote to its standard error.
    pub stderr: Vec<u8>,
}

/// Where a script stands.
#[derive(Debug)]
pub enum Progress {
    /// It goes on when this is answered.
    Needs(Request),
    /// It is over.
    Ended(Ended),
}

/// A script that runs: ask it what it needs ([`Self::advance`]), answer ([`Self::answer`]), and so on. It does nothing by
/// itself, and may be dropped wherever it is.
pub struct Running {
    future: Pin<Box<dyn Future<Output = Result<u8, Stopped>> + Send>>,
    door: Arc<Door>,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

impl Script {
    /// Begins at its first command. A text that is no script ends with exit code 2.
    pub fn start(self) -> Running {
        let door = Arc::new(Door::default());
        let shell = Shell::new(&self, Arc::clone(&door));
        let future = Box::pin(interpreter::run(shell, self.text));
        Running { future, door }
    }
}

impl Running {
    /// Goes on to the next thing that it needs, or to its end.
    pub fn advance(&mut self) -> Progress {
        let polled = self.future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        let mut state = self.door.lock();
        let code = match (polled, state.request.take()) {
            (Poll::Pending, Some(request)) => return Progress::Needs(request),
            // It waits for nothing but answers, so this one was not answered.
            (Poll::Pending, None) => Err(Stopped::Answer),
            (Poll::Ready(code), _) => code,
        };
        let (stdout, stderr) = (std::mem::take(&mut state.stdout), std::mem::take(&mut state.stderr));
        Progress::Ended(Ended { code, stdout, stderr })
    }

    /// Ends the script where it is: what it has written to its standard output and its standard error.
    pub fn give_up(self) -> (Vec<u8>, Vec<u8>) {
        let mut state = self.door.lock();
        (std::mem::take(&mut state.stdout), std::mem::take(&mut state.stderr))
    }

    /// Answers the request that [`Self::advance`] came back with last.
    pub fn answer(&mut self, reply: Reply) {
        self.door.lock().reply = Some(reply);
    }
}

/// The one way between a script and whoever runs it. Both hold it, never at the same time.
#[derive(Debug, Default)]
pub(crate) struct Door {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    request: Option<Request>,
    reply: Option<Reply>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// A stream of the whole script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Door {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so the state is whole after a panic, too.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for something, and waits until it was answered.
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

    /// Writes to a stream of the script's own.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8]) {
        let mut state = self.lock();
        match stream {
            Stream::Stdout => state.stdout.extend_from_slice(bytes),
            Stream::Stderr => state.stderr.extend_from_slice(bytes),
        }
    }
}
