//! The compile helper: a process for one component, with limits that the kernel keeps.
//!
//! The component comes on standard input, the compiled form goes to standard output. What is wrong with the component goes to
//! standard error. The process has no other descriptors, and an environment that its keeper chose; before it reads a byte
//! it raises its fence, behind which it can open nothing. A module that components share is compiled in the same way, by
//! a process that sees nothing of them: what a component can make of its compiler is its own code, never another's.

use std::{
    fmt::{self, Write as _},
    io::{self, Read as _, Write as _},
    process::ExitCode,
};

use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use serde::{Deserialize, Serialize};

use crate::{fence::Fence, options::CompileLimits};

/// What a helper is told of its limits, as its last argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HelperLimits {
    memory: u64,
    cpu_seconds: u64,
    component: u64,
    output: u64,
    /// What comes.
    part: Part,
    /// The process that starts it.
    keeper: u32,
}

/// What is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// A component, without the modules that it shares.
    Component,
    /// Such a module.
    Module,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Component => "component",
            Self::Module => "module",
        })
    }
}

/// Why a helper did not compile its component.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// It was not started by a keeper.
    #[error("the last argument must be the limits, as an agent gives them to its compile helper")]
    Limits(#[source] serde_json::Error),
    /// Its keeper is gone already.
    #[error("the keeper that started it is gone")]
    Orphan,
    /// The kernel does not take a limit.
    #[error("a limit cannot be set")]
    Limit(#[source] rustix::io::Errno),
    /// The component cannot be read or its compiled form not be written.
    #[error("cannot read the component or write its compiled form")]
    Io(#[source] io::Error),
    /// The component has more bytes than it may.
    #[error("the component is larger than {0} bytes")]
    TooLarge(u64),
    /// There is no compiler.
    #[error(transparent)]
    Engine(periapt_sandbox::BuildError),
    /// The compiler refuses the component.
    #[error("{0}")]
    Component(String),
}

impl HelperLimits {
    /// What a keeper of this process gives a helper for a part.
    pub(crate) fn new(limits: &CompileLimits, part: Part) -> Self {
        Self {
            memory: limits.memory,
            cpu_seconds: limits.cpu_seconds,
            component: limits.component,
            output: limits.output,
            part,
            keeper: std::process::id(),
        }
    }

    /// As the argument.
    pub(crate) fn to_argument(self) -> String {
        // A struct of numbers always has a JSON form; without one the helper says that it got no limits.
        serde_json::to_string(&self).unwrap_or_default()
    }

    /// Sees to it that this process ends with its keeper, whenever that does.
    fn end_with_keeper(self) -> Result<(), HelperError> {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).map_err(HelperError::Limit)?;
        // The keeper may have been gone before it was asked for: then somebody else is the parent by now, for whose
        // end nobody waits.
        self.require_keeper(rustix::process::getppid())
    }

    fn require_keeper(self, parent: Option<rustix::process::Pid>) -> Result<(), HelperError> {
        let parent = parent.and_then(|parent| u32::try_from(parent.as_raw_nonzero().get()).ok());
        if parent == Some(self.keeper) { Ok(()) } else { Err(HelperError::Orphan) }
    }

    /// Binds this process.
    fn bind(self) -> Result<(), HelperError> {
        // Private memory, not address space: the engine reserves far more addresses than it ever uses.
        for (resource, limit) in [
            (Resource::Data, self.memory),
            (Resource::Cpu, self.cpu_seconds),
            (Resource::Fsize, self.output),
            (Resource::Nofile, 16),
            (Resource::Core, 0),
        ] {
            let limit = Rlimit { current: Some(limit), maximum: Some(limit) };
            setrlimit(resource, limit).map_err(HelperError::Limit)?;
        }
        Ok(())
    }
}

/// What a program runs when it is started as a compile helper. `limits` is its last argument.
///
/// The exit code says whether standard output holds the compiled component; else standard error says why not, in
/// one line.
pub fn run_compile_helper(limits: &str) -> ExitCode {
    match compile(limits) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut text = error.to_string();
            let mut source = std::error::Error::source(&error);
            while let Some(error) = source {
                let _ = write!(text, ": {error}");
                source = error.source();
            }
            // Nobody reads it: then nobody needs it.
            let _ = writeln!(io::stderr(), "{text}");
            ExitCode::FAILURE
        }
    }
}

fn compile(limits: &str) -> Result<(), HelperError> {
    let limits: HelperLimits = serde_json::from_str(limits).map_err(HelperError::Limits)?;
    limits.end_with_keeper()?;
    limits.bind()?;
    // What this host does not offer the keeper has told when it started.
    let _ = Fence::CompileHelper.raise();
    let mut source = Vec::new();
    io::stdin().lock().take(limits.component + 1).read_to_end(&mut source).map_err(HelperError::Io)?;
    if source.len() as u64 > limits.component {
        return Err(HelperError::TooLarge(limits.component));
    }
    // Nothing runs here: the smallest engine makes the same code.
    let options = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
    let sandbox = periapt_sandbox::Sandbox::new(options).map_err(HelperError::Engine)?;
    let compiled = match limits.part {
        Part::Component => sandbox.compile(&source),
        Part::Module => sandbox.compile_module(&source),
    };
    let compiled = compiled.map_err(|error| HelperError::Component(error.to_string()))?;
    let mut output = io::stdout().lock();
    output.write_all(&compiled).and_then(|()| output.flush()).map_err(HelperError::Io)
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpid, getppid};

    use super::*;

    #[test]
    fn a_helper_whose_keeper_is_gone_compiles_nothing() {
        let limits = HelperLimits::new(&CompileLimits::default(), Part::Component);
        limits.require_keeper(Some(getpid())).unwrap();
        for other in [getppid(), None] {
            let error = limits.require_keeper(other).unwrap_err();
            assert!(matches!(error, HelperError::Orphan), "{error}");
        }
    }
}
