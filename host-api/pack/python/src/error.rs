//! Why a Python charm was not packed.

use std::{io, path::PathBuf};

use periapt_archive::PackError;
use periapt_host_api::yaml::YamlError;

use crate::Finding;

/// Why a Python charm was not packed.
#[derive(Debug, thiserror::Error)]
pub enum PythonError {
    /// There is no Python on this machine.
    #[error("python3 cannot be run ({0}), and packing a Python charm needs it, 3.10 or newer, with pip")]
    NoPython(#[source] io::Error),
    /// There is one that is too old.
    #[error("python3 is Python {0}, and packing a Python charm needs 3.10 or newer")]
    OldPython(String),
    /// It has no pip.
    #[error("python3 has no pip, which packing a Python charm needs (Debian, Ubuntu: python3-pip)")]
    NoPip,
    /// The compiler of components cannot be fetched.
    #[error("cannot fetch {tool}: {reason}")]
    Tool {
        /// Name and version.
        tool: String,
        /// What pip says.
        reason: String,
    },
    /// The metadata cannot be split.
    #[error("charmcraft.yaml: {0}")]
    Metadata(#[from] YamlError),
    /// pip cannot bring the dependencies.
    #[error("cannot bring in the charm's dependencies: {0}")]
    Dependencies(String),
    /// The index that pip is told to ask does not answer.
    #[error("cannot bring in the charm's dependencies: {0}")]
    Unreachable(String),
    /// What the charm brings along was made to hurt, or is out of all proportion.
    #[error("{0} was stopped: it took more memory or time than packing a charm may take")]
    Stopped(&'static str),
    /// What certainly fails when the charm is imported.
    #[error("the charm cannot be imported in the sandbox:\n{}", lines(.0))]
    CannotRun(Vec<Finding>),
    /// What went wrong when the charm was imported.
    #[error("the charm cannot be imported in the sandbox:\n{0}")]
    Build(String),
    /// The archive cannot be made.
    #[error(transparent)]
    Pack(#[from] PackError),
    /// A file of the packer's own cannot be used.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The packer's own Python code does not do what it should: a defect of this program.
    #[error("{what} failed: {message}")]
    Defect {
        /// What was run.
        what: &'static str,
        /// What it said.
        message: String,
    },
}

fn lines(findings: &[Finding]) -> String {
    findings.iter().map(|finding| format!("  {finding}")).collect::<Vec<_>>().join("\n")
}
