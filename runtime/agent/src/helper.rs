//! The compile helper: a process for one component, with limits that the kernel keeps.
//!
//! A module that components share is compiled in the same way, by a process that sees nothing of them: what a component
//! can make of its compiler is its own code, never another's.

use std::{fmt, process::ExitCode};

use periapt_helper::{Fault, Limits, run_helper};
use serde::{Deserialize, Serialize};

use crate::options::CompileLimits;

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

impl From<CompileLimits> for Limits {
    fn from(limits: CompileLimits) -> Self {
        let CompileLimits { memory, cpu_seconds, deadline, component, output } = limits;
        Self { memory, cpu_seconds, deadline, input: component, output }
    }
}

/// What a program runs when it is started as a compile helper. `order` is its last argument.
///
/// The exit code says whether standard output holds the compiled component; else standard error says why not, in
/// one line.
pub fn run_compile_helper(order: &str) -> ExitCode {
    run_helper(order, compile)
}

fn compile(part: Part, source: Vec<u8>) -> Result<Vec<u8>, Fault> {
    // Nothing runs here: the smallest engine makes the same code.
    let options = periapt_sandbox::Options { hooks_in_flight: 1, ..periapt_sandbox::Options::default() };
    let sandbox = periapt_sandbox::Sandbox::new(options).map_err(|error| Fault::Host(error.to_string()))?;
    let compiled = match part {
        Part::Component => sandbox.compile(&source),
        Part::Module => sandbox.compile_module(&source),
    };
    compiled.map_err(|error| Fault::Refused(error.to_string()))
}
