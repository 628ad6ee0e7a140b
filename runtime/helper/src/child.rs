//! The helper's own side: the function that a program calls when it is started as a helper.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::AsFd as _,
    process::ExitCode,
};

use rustix::{
    fs::{FileType, fstat},
    process::{Pid, Signal},
};
use serde::de::DeserializeOwned;

use crate::{fence::Fence, limits::HelperJob};

/// The exit code of a helper that refuses its input.
pub(crate) const REFUSED: u8 = 1;
/// The exit code of a helper that could not start, or not write its output: the host's fault. It is also the command
/// line's exit code for invalid arguments.
pub(crate) const UNUSABLE: u8 = 2;

/// The reason why a helper did not do its work.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// A fault of the input. A repetition with the same input fails again.
    #[error("{0}")]
    Refused(String),
    /// A fault of this host.
    #[error("{0}")]
    Host(String),
}

/// The input of a helper, of which nothing was read.
#[derive(Debug)]
pub struct HelperInput {
    most: u64,
}

impl HelperInput {
    /// Reads all of it into memory.
    ///
    /// # Errors
    /// It cannot be read, or is larger than the limit.
    pub fn bytes(self) -> Result<Vec<u8>, Fault> {
        let mut input = Vec::new();
        // One byte past the limit shows that the input is too large.
        io::stdin()
            .lock()
            .take(self.most.saturating_add(1))
            .read_to_end(&mut input)
            .map_err(|error| Fault::Host(format!("cannot read the input: {error}")))?;
        self.within(input.len() as u64)?;
        Ok(input)
    }

    /// Returns it as an open file, to be read in any order.
    ///
    /// # Errors
    /// It is no file, or is larger than the limit.
    pub fn file(self) -> Result<File, Fault> {
        let failed = |error: io::Error| Fault::Host(format!("cannot read the input: {error}"));
        let file = File::from(io::stdin().as_fd().try_clone_to_owned().map_err(failed)?);
        // The standard library asks by a call that also takes names, which no helper may make.
        let status = fstat(&file).map_err(|error| failed(error.into()))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(Fault::Host("the input is no file".to_owned()));
        }
        self.within(u64::try_from(status.st_size).unwrap_or_default())?;
        Ok(file)
    }

    fn within(&self, length: u64) -> Result<(), Fault> {
        match length > self.most {
            true => Err(Fault::Refused(format!("the input is larger than {} bytes", self.most))),
            false => Ok(()),
        }
    }
}

/// Runs the helper's work on its input in memory, behind [`Fence::Helper`], as [`run_helper_behind`] does.
pub fn run_helper<W: DeserializeOwned>(
    job: &str,
    work: impl FnOnce(W, Vec<u8>) -> Result<Vec<u8>, Fault>,
) -> ExitCode {
    run_helper_behind(job, |_| Fence::Helper, |order, input| work(order, input.bytes()?))
}

/// Runs the helper's work, when a program is started as a helper. `job` is its last argument.
///
/// The process has no descriptors but the standard three, and an environment that its starter chose. Before it reads a
/// byte it raises the fence of its work, behind which it can open nothing, or what the work needs. On success standard
/// output holds its output. Otherwise standard error holds the reason, in one line.
pub fn run_helper_behind<W: DeserializeOwned>(
    job: &str,
    fence: impl FnOnce(&W) -> Fence<'_>,
    work: impl FnOnce(W, HelperInput) -> Result<Vec<u8>, Fault>,
) -> ExitCode {
    let fault = match run(job, fence, work) {
        Ok(()) => return ExitCode::SUCCESS,
        Err(fault) => fault,
    };
    // Without a reader on standard error the message is of no use.
    let _ = writeln!(io::stderr(), "{fault}");
    ExitCode::from(match fault {
        Fault::Refused(_) => REFUSED,
        Fault::Host(_) => UNUSABLE,
    })
}

fn run<W: DeserializeOwned>(
    job: &str,
    fence: impl FnOnce(&W) -> Fence<'_>,
    work: impl FnOnce(W, HelperInput) -> Result<Vec<u8>, Fault>,
) -> Result<(), Fault> {
    let job: HelperJob<W> = serde_json::from_str(job)
        .map_err(|error| Fault::Host(format!("the last argument must be a job for a helper: {error}")))?;
    end_with(job.starter)?;
    let fence = fence(&job.work);
    let bound = job.limits.bind(fence.descriptors());
    bound.map_err(|error| Fault::Host(format!("a limit cannot be set: {error}")))?;
    // The starting process has logged at its own start which parts of the fence this host lacks.
    let _ = fence.raise();
    let output = work(job.work, HelperInput { most: job.limits.input })?;
    if output.len() as u64 > job.limits.output {
        let text = format!("what is made of it has more than {} bytes", job.limits.output);
        return Err(Fault::Refused(text));
    }
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(&output)
        .and_then(|()| stdout.flush())
        .map_err(|error| Fault::Host(format!("cannot write what was made: {error}")))
}

/// Makes this process end with the process that started it.
fn end_with(starter: u32) -> Result<(), Fault> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| {
        Fault::Host(format!("cannot be made to end with the process that started it: {error}"))
    })?;
    // The starter may have ended before that call. Then this process has another parent already, whose end would not
    // end it.
    require_parent(starter, rustix::process::getppid())
}

fn require_parent(starter: u32, parent: Option<Pid>) -> Result<(), Fault> {
    let parent = parent.and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
    match parent == Some(starter) {
        true => Ok(()),
        false => Err(Fault::Host("the process that started it is gone".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpid, getppid};

    use super::*;

    #[test]
    fn a_helper_whose_starter_is_gone_does_nothing() {
        let own = std::process::id();
        require_parent(own, Some(getpid())).unwrap();
        for other in [getppid(), None] {
            let fault = require_parent(own, other).unwrap_err();
            assert!(matches!(&fault, Fault::Host(text) if text.contains("is gone")), "{fault}");
        }
    }
}
