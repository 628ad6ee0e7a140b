//! The packer's own Python.

use std::{
    ffi::OsStr,
    process::{Command, Output, Stdio},
};

use crate::PythonError;

/// The oldest that works: `ops` itself asks for it, and so does the syntax that charms are checked for.
const OLDEST: (u32, u32) = (3, 10);

/// A Python that was asked for its version.
#[derive(Debug, Clone)]
pub(crate) struct Python(());

impl Python {
    /// Looks for `python3`.
    pub(crate) fn find() -> Result<Self, PythonError> {
        let asked = command()
            .args(["-c", "import sys; print('%d.%d.%d' % sys.version_info[:3])"])
            .output()
            .map_err(PythonError::NoPython)?;
        let version = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
        let mut numbers = version.split('.').filter_map(|number| number.parse::<u32>().ok());
        match (numbers.next(), numbers.next()) {
            (Some(major), Some(minor)) if (major, minor) >= OLDEST => Ok(Self(())),
            _ if version.is_empty() => {
                let said = String::from_utf8_lossy(&asked.stderr).trim().to_owned();
                Err(PythonError::NoPython(std::io::Error::other(said)))
            }
            _ => Err(PythonError::OldPython(version)),
        }
    }

    /// Sees that it has pip.
    pub(crate) fn require_pip(&self) -> Result<(), PythonError> {
        match self.run(["-m", "pip", "--version"])?.status.success() {
            true => Ok(()),
            false => Err(PythonError::NoPip),
        }
    }

    /// Runs it to its end.
    pub(crate) fn run(
        &self,
        arguments: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Output, PythonError> {
        self.output(command().args(arguments))
    }

    /// The same, with a command of the caller's making.
    pub(crate) fn output(&self, command: &mut Command) -> Result<Output, PythonError> {
        command.output().map_err(PythonError::NoPython)
    }

    /// A command to add to.
    pub(crate) fn command(&self) -> Command {
        command()
    }
}

fn command() -> Command {
    let mut command = Command::new("python3");
    command
        .stdin(Stdio::null())
        // What Python compiles is of no use to the next one who packs.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME");
    command
}
