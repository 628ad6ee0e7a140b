//! Starting runners.
//!
//! A runner gets its end of a socketpair as its standard input, an environment that its keeper chose, and nothing
//! else: all other descriptors of the keeper close when the runner's program starts.

use std::{io, os::fd::OwnedFd, process::Stdio, time::Duration};

use futures_util::future::BoxFuture;
use tokio::{
    net::UnixStream,
    process::{Child, Command},
    time::timeout,
};

use crate::options::Program;

/// How long a process that was told to end, or that closed its socket, may take to be gone before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A started runner.
pub(crate) struct Runner {
    /// The keeper's end of the socketpair.
    pub(crate) socket: UnixStream,
    /// The process.
    pub(crate) process: Box<dyn Process>,
}

/// A runner's process. It is killed when this is dropped.
pub(crate) trait Process: Send {
    /// Kills it.
    fn kill(&mut self);

    /// Waits until it is gone, killing it if it takes its time, and says how it ended, for logs.
    fn gone(self: Box<Self>) -> BoxFuture<'static, String>;
}

/// Whoever starts runners.
pub(crate) trait Launch: Send + Sync + 'static {
    /// Starts one.
    fn runner(&self) -> io::Result<Runner>;
}

/// Starts runners as processes of a program.
#[derive(Debug, Clone)]
pub(crate) struct Processes(pub(crate) Program);

impl Launch for Processes {
    fn runner(&self) -> io::Result<Runner> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        theirs.set_nonblocking(true)?;
        let child = Command::new(&self.0.path)
            .args(&self.0.runner)
            .env_clear()
            .envs(self.0.environment.iter().map(|(name, value)| (name, value)))
            .current_dir("/")
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            // A signal from the terminal is for the keeper, which ends its runners in order.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        Ok(Runner { socket: UnixStream::from_std(ours)?, process: Box::new(ChildProcess(child)) })
    }
}

struct ChildProcess(Child);

impl Process for ChildProcess {
    fn kill(&mut self) {
        if let Err(error) = self.0.start_kill() {
            tracing::debug!(%error, "a runner could not be killed; it is gone already");
        }
    }

    fn gone(mut self: Box<Self>) -> BoxFuture<'static, String> {
        Box::pin(async move {
            let status = match timeout(GRACE, self.0.wait()).await {
                Ok(status) => status,
                Err(_) => {
                    self.kill();
                    self.0.wait().await
                }
            };
            match status {
                Ok(status) => status.to_string(),
                Err(error) => error.to_string(),
            }
        })
    }
}
