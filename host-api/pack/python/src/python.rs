//! The packer's own Python.

use std::process::{Command, Output, Stdio};

use crate::PythonError;

/// Runs a module that is installed, or in `PYTHONPATH`. Python would rather take one that lies where it is started, which is
/// mostly the directory of the charm: then whoever packs a stranger's charm would run a stranger's `pip.py`.
const MODULE: &str = "import sys; sys.path = [place for place in sys.path if place]; import runpy; \
                      runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)";

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
        match self.output(self.module("pip").arg("--version"))?.status.success() {
            true => Ok(()),
            false => Err(PythonError::NoPip),
        }
    }

    /// Runs a command to its end.
    pub(crate) fn output(&self, command: &mut Command) -> Result<Output, PythonError> {
        command.output().map_err(PythonError::NoPython)
    }

    /// A command that runs a module, to add to.
    pub(crate) fn module(&self, name: &str) -> Command {
        let mut command = command();
        command.args(["-c", MODULE, name]);
        command
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
            // That there is no pip is another matter.
            assert!(done.status.success() || module == "pip", "{}", String::from_utf8_lossy(&done.stderr));
        }
        assert!(!charm.path().join("ran").exists());
    }
}
