//! Runs of `componentize-py`.

use std::{fs, os::unix::process::ExitStatusExt as _, path::Path};

use crate::{PythonError, python::Python};

/// A Python program that runs `componentize-py`. Its arguments: the tool's directory, a limit of CPU time in seconds,
/// and the tool's own arguments. The limit is needed: the tool imports the charm's modules, and their code may never
/// end.
const RUN: &str = "import resource, sys
sys.path.insert(0, sys.argv.pop(1))
most = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_CPU, (most, most))
from componentize_py import script
sys.exit(script())";

/// The limit of CPU time for one component, in seconds. A component takes about 15.
const MOST_SECONDS: u32 = 600;

/// The directory in which a component is built, with the package `periapt_ops`, the charm and the contract below it.
#[derive(Debug)]
pub(crate) struct Stage<'a> {
    pub(crate) directory: &'a Path,
}

impl Stage<'_> {
    /// Builds the component from the charm in `charm`, the package in `shim` and the contract in `wit`.
    pub(crate) fn build(&self, python: &Python, tool: &Path, output: &Path) -> Result<(), PythonError> {
        // Without a virtual environment, the tool would add all packages of this machine's Python.
        let nothing = self.directory.join("site");
        let packages = nothing.join("lib/python3/site-packages");
        fs::create_dir_all(&packages).map_err(|source| PythonError::Io { path: packages.clone(), source })?;
        let done = python.output(
            python
                .command()
                .current_dir(self.directory)
                .env("VIRTUAL_ENV", &nothing)
                .args(["-I", "-c", RUN])
                .arg(tool)
                .arg(MOST_SECONDS.to_string())
                .args(["--quiet", "-d", "wit", "-w", "python-charm", "componentize"])
                .args(["-p", "shim", "-p", "charm", "periapt_component", "-o"])
                .arg(output),
        )?;
        match done.status.success() && output.exists() {
            true => Ok(()),
            false => Err(PythonError::Build(match done.status.signal() {
                Some(signal) => stopped(signal),
                None => reason(&String::from_utf8_lossy(&done.stderr)),
            })),
        }
    }
}

/// Describes a build that a signal ended.
fn stopped(signal: i32) -> String {
    format!(
        "building it was stopped by signal {signal}: importing the charm may take no more than {MOST_SECONDS} s of CPU time"
    )
}

/// Extracts the charm's own error, which stands between two traces of the tool.
fn reason(stderr: &str) -> String {
    let (_, from) = stderr.split_once("AssertionError: ").unwrap_or(("", stderr));
    let (text, _) = from.split_once("\n\nCaused by:").unwrap_or((from, ""));
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_failed_build_the_charms_own_words_are_told() {
        let stderr = "Traceback (most recent call last):\n  File \"<string>\", line 1\nAssertionError: Traceback (most recent call last):\n  File \"/charm/src/charm.py\", line 3, in <module>\nZeroDivisionError: division by zero\n\n\nCaused by:\n    x\n\nStack backtrace:\n   0: y\n";
        let expected = "Traceback (most recent call last):\n  File \"/charm/src/charm.py\", line 3, in <module>\nZeroDivisionError: division by zero";
        assert_eq!(reason(stderr), expected);
        assert_eq!(reason("no such file\n"), "no such file");
    }
}
