//! Errors of packing a Python charm.

use std::{io, path::PathBuf};

use periapt_archive::PackError;
use periapt_host_api::yaml::YamlError;

use crate::CheckFinding;

/// An error of packing a Python charm.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// This machine has no Python.
    #[error("python3 cannot be run ({0}), and packing a Python charm needs it, 3.10 or newer, with pip")]
    NoPython(#[source] io::Error),
    /// This machine's Python is too old. Holds its version.
    #[error("python3 is Python {0}, and packing a Python charm needs 3.10 or newer")]
    OldPython(String),
    /// This machine's Python has no pip.
    #[error("python3 has no pip, which packing a Python charm needs (Debian, Ubuntu: python3-pip)")]
    NoPip,
    /// pip cannot fetch `componentize-py`.
    #[error("cannot fetch {tool}: {reason}")]
    Tool {
        /// The tool's name and version.
        tool: String,
        /// pip's message.
        reason: String,
    },
    /// The metadata is no valid YAML.
    #[error("charmcraft.yaml: {0}")]
    Metadata(#[from] YamlError),
    /// pip cannot install the dependencies.
    #[error("cannot install the charm's dependencies: {0}")]
    Dependencies(String),
    /// The package index does not answer.
    #[error("cannot install the charm's dependencies: {0}")]
    Unreachable(String),
    /// A step exceeded its limit of memory or time. Holds the step.
    #[error("{0} was stopped: it took more memory or time than packing a charm may take")]
    Stopped(&'static str),
    /// The charm's sources or its charmcraft.yaml have errors that keep it from running. Holds
    /// them.
    #[error("the charm cannot be imported in the sandbox:\n{}", lines(.0))]
    CannotRun(Vec<CheckFinding>),
    /// The charm's import failed.
    #[error("the charm cannot be imported in the sandbox: {0}")]
    Import(ImportFailure),
    /// The archive cannot be made.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A file of the packer's own cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The packer's own Python code failed: a defect of this program.
    #[error("{what} failed: {message}")]
    Defect {
        /// The step.
        what: &'static str,
        /// The program's message.
        message: String,
    },
}

/// The failure of a charm's import. Its text is the cause alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct ImportFailure {
    /// The place in the charm's own code and the exception, or the reason why there is none, in one line.
    pub cause: String,
    /// Python's trace, or the innermost functions of the interpreter that ended; may be empty.
    pub trace: String,
}

impl ImportFailure {
    pub(crate) fn new(cause: String) -> Self {
        Self { cause, trace: String::new() }
    }
}

fn lines(findings: &[CheckFinding]) -> String {
    findings.iter().map(|finding| format!("  {finding}")).collect::<Vec<_>>().join("\n")
}
