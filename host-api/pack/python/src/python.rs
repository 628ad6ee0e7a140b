//! The native Python that runs the packer's own code.

use std::process::{Command, Output, Stdio};

use crate::PythonError;

/// A Python program that runs a module from the installation or from `PYTHONPATH`. Plain `python3 -m` would prefer a
/// module in the working directory, so that a hostile charm could bring its own `pip.py`.
const MODULE: &str = "import sys; sys.path = [place for place in sys.path if place]; import runpy; \
                      runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)";

/// The oldest version that `ops` and the checker of sources support.
const OLDEST: (u32, u32) = (3, 10);

/// A `python3` of a supported version.
#[derive(Debug, Clone)]
pub(crate) struct Python(());

impl Python {
    /// Finds `python3` in PATH and checks its version.
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

    /// Checks that pip is installed.
    pub(crate) fn require_pip(&self) -> Result<(), PythonError> {
        match self.output(self.module("pip").arg("--version"))?.status.success() {
            true => Ok(()),
            false => Err(PythonError::NoPip),
        }
    }

    /// Runs a command to its end.
    pub(crate) fn output(&self, command: &mut Command) -> Result<Output, PythonError> {
        command.output().map_err(PythonError::NoPython)
    }

    /// Returns a command that runs a module; the caller adds arguments.
    pub(crate) fn module(&self, name: &str) -> Command {
        let mut command = command();
        command.args(["-c", MODULE, name]);
        command
    }

    /// Returns a command that runs Python; the caller adds arguments.
    pub(crate) fn command(&self) -> Command {
        command()
    }
}

fn command() -> Command {
    let mut command = Command::new("python3");
    command
        .stdin(Stdio::null())
        // The next run cannot use these compiled files.
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env_remove("PYTHONPATH")
        .env_remove("PYTHONHOME");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_that_lie_where_python_is_started_are_not_run() {
        let python = Python::find().unwrap();
        let charm = tempfile::tempdir().unwrap();
        for name in ["pip.py", "runpy.py", "json.py"] {
            std::fs::write(charm.path().join(name), "open('ran', 'w')").unwrap();
        }
        for (module, argument) in [("pip", "--version"), ("json.tool", "--help")] {
            let done = python.output(python.module(module).arg(argument).current_dir(charm.path())).unwrap();
            // A Python without pip also passes.
            assert!(done.status.success() || module == "pip", "{}", String::from_utf8_lossy(&done.stderr));
        }
        assert!(!charm.path().join("ran").exists());
    }
}
