//! The compile helper: a process for one component, with limits that the kernel enforces.
//!
//! Another helper compiles each shared module, without access to the component. A hostile component that takes over its
//! compiler can only change its own code.

use std::{fmt, process::ExitCode};

use periapt_helper::{Fault, Limits, run_helper};
use serde::{Deserialize, Serialize};

use crate::options::CompileLimits;

/// The input of a compile helper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// A component, without its shared modules.
    Component,
    /// A shared module.
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

impl From<CompileLimits> for Limits {
    fn from(limits: CompileLimits) -> Self {
        let CompileLimits { memory, cpu_seconds, deadline, component, output } = limits;
        Self { memory, cpu_seconds, deadline, input: component, output }
    }
}

/// Runs the compile helper in this process. `order` is the last argument of its command line.
///
/// On success, standard output has the compiled code. On failure, standard error has one line with the reason.
pub fn run_compile_helper(order: &str) -> ExitCode {
    run_helper(order, compile)
}

fn compile(part: Part, source: Vec<u8>) -> Result<Vec<u8>, Fault> {
    // Nothing runs in this engine, and the smallest one compiles to the same code.
    let options = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
    let sandbox = periapt_sandbox::Sandbox::new(options).map_err(|error| Fault::Host(error.to_string()))?;
    let compiled = match part {
        Part::Component => sandbox.compile(&source),
        Part::Module => sandbox.compile_module(&source),
    };
    compiled.map_err(|error| Fault::Refused(error.to_string()))
}
