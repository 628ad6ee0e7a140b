//! A running script, from its first command to its exit code.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
};

use crate::{
    Reply, Request, Script, Stopped,
    channel::RequestChannel,
    interpreter::{self, Shell},
};

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
