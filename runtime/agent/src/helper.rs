//! The compile helper: a process for one component, with limits that the kernel keeps.
//!
//! The component comes on standard input, behind it functions that were compiled before, if it is to take any. The
//! compiled form goes to standard output, behind it the functions that were compiled anew, and eight bytes that say how
//! long these are. What is wrong with the component goes to standard error. The process has no other descriptors, and an
//! environment that its keeper chose; before it reads a byte it raises its fence, behind which it can open nothing.

use std::{
    fmt::Write as _,
    io::{self, Read as _, Write as _},
    process::ExitCode,
    sync::Arc,
};

use periapt_sandbox::Functions;
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
    /// How many bytes of functions come behind the component; none: it is compiled without any, and adds none.
    functions: Option<u64>,
    /// The process that starts it.
    keeper: u32,
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

impl From<&CompileLimits> for HelperLimits {
    fn from(limits: &CompileLimits) -> Self {
        Self {
            memory: limits.memory,
            cpu_seconds: limits.cpu_seconds,
            component: limits.component,
            output: limits.output,
            functions: None,
            keeper: std::process::id(),
        }
    }
}

impl HelperLimits {
    /// With functions behind the component.
    pub(crate) fn with_functions(self, bytes: u64) -> Self {
        Self { functions: Some(bytes), ..self }
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
    let mut component = Vec::new();
    let known = limits.functions.unwrap_or_default();
    let most = limits.component.saturating_add(known);
    io::stdin().lock().take(most + 1).read_to_end(&mut component).map_err(HelperError::Io)?;
    if component.len() as u64 > most {
        return Err(HelperError::TooLarge(limits.component));
    }
    let end = (component.len() as u64).saturating_sub(known);
    let known = component.split_off(usize::try_from(end).unwrap_or(usize::MAX).min(component.len()));
    // Nothing runs here: the smallest engine makes the same code.
    let options = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
    let sandbox = periapt_sandbox::Sandbox::new(options).map_err(HelperError::Engine)?;
    let functions = limits.functions.map(|_| Arc::new(Functions::new(known)));
    let compiled = match &functions {
        Some(functions) => sandbox.compile_with(&component, functions),
        None => sandbox.compile(&component),
    };
    let compiled = compiled.map_err(|error| HelperError::Component(error.to_string()))?;
    let added = functions.map(|functions| functions.take_added()).unwrap_or_default();
    let mut output = io::stdout().lock();
    for part in [compiled.as_slice(), &added, &(added.len() as u64).to_le_bytes()] {
        output.write_all(part).map_err(HelperError::Io)?;
    }
    output.flush().map_err(HelperError::Io)
}

#[cfg(test)]
mod tests {
    use rustix::process::{getpid, getppid};

    use super::*;

    #[test]
    fn a_helper_whose_keeper_is_gone_compiles_nothing() {
        let limits = HelperLimits::from(&CompileLimits::default());
        limits.require_keeper(Some(getpid())).unwrap();
        for other in [getppid(), None] {
            let error = limits.require_keeper(other).unwrap_err();
            assert!(matches!(error, HelperError::Orphan), "{error}");
        }
    }
}
