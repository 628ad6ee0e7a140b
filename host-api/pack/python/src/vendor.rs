//! Calls of `periapt_packing`, which installs dependencies and checks sources.

use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    CheckFinding, DependencyOptions, PythonError, dependency_options::Repositories, parts::Required,
    python::Python,
};

/// The exit code of `periapt_packing` when it exceeds its limit of memory.
const OUT_OF_MEMORY: i32 = 3;

/// The result of installing dependencies.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Vendored {
    error: Option<String>,
    /// True if the cause is an index that does not answer.
    #[serde(default)]
    unreachable: bool,
    /// The native extension modules that were removed, as JSON for the check of sources.
    #[serde(default)]
    pub(crate) native: Value,
    /// The installed packages, as NAME==VERSION.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// Findings about the charm's requirements and about packages that were not installed.
    #[serde(default)]
    findings: Vec<CheckFinding>,
}

/// The package `periapt_packing` on disk.
#[derive(Debug)]
pub(crate) struct Packing<'a> {
    pub(crate) python: &'a Python,
    /// The directories that hold `periapt_packing` and `periapt_ops`.
    pub(crate) packages: [&'a Path; 2],
    /// Directories with wheels of native code for the sandbox.
    pub(crate) wheels: &'a [PathBuf],
    /// A directory for temporary files. A process that a signal ends leaves its own.
    pub(crate) temporary: &'a Path,
}

impl Packing<'_> {
    /// Installs a charm's dependencies in `target`, by its parts. The charm's paths must not lead out of `repository`.
    /// `told` gets the findings, also when this fails: they may explain the error.
    pub(crate) fn vendor(
        &self,
        charm: &Path,
        repository: &Path,
        required: &Required,
        choices: &DependencyOptions,
        target: &Path,
        told: &mut Vec<CheckFinding>,
    ) -> Result<Vendored, PythonError> {
        let mut arguments: Vec<OsString> = vec![charm.into(), target.into()];
        arguments.extend(required.arguments());
        arguments.extend(self.wheels.iter().flat_map(|wheels| [OsString::from("--wheels"), wheels.into()]));
        arguments.extend(["--repository".into(), repository.into()]);
        arguments.extend(choices.upgrades.iter().map(|name| format!("--upgrade={name}").into()));
        if choices.repositories == Repositories::Fetched {
            arguments.push("--allow-git".into());
        }
        let mut vendored: Vendored = self.run("fetching dependencies", "vendor", &arguments)?;
        told.append(&mut vendored.findings);
        match vendored.error.take() {
            Some(error) if vendored.unreachable => Err(PythonError::Unreachable(error)),
            Some(error) => Err(PythonError::Dependencies(error)),
            None => Ok(vendored),
        }
    }

    /// Checks a charm's sources. `native` is a file with the removed extension modules, `original` the author's own
    /// directory.
    pub(crate) fn check(
        &self,
        charm: &Path,
        native: &Path,
        original: &Path,
    ) -> Result<Vec<CheckFinding>, PythonError> {
        self.run("checking the sources", "check", &[charm.into(), native.into(), original.into()])
    }

    fn run<T: DeserializeOwned>(
        &self,
        what: &'static str,
        verb: &str,
        arguments: &[OsString],
    ) -> Result<T, PythonError> {
        // The packer made these paths, so they contain no separator.
        let path = std::env::join_paths(self.packages).unwrap_or_default();
        let done = self.python.output(
            self.python
                .module("periapt_packing")
                .env("PYTHONPATH", path)
                .env("TMPDIR", self.temporary)
                .arg(verb)
                .args(arguments),
        )?;
        let Output { status, stdout, stderr } = done;
        let said = || String::from_utf8_lossy(&stderr).trim().to_owned();
        if status.code() == Some(OUT_OF_MEMORY) || status.signal().is_some() {
            return Err(PythonError::Stopped(what));
        }
        if !status.success() {
            return Err(PythonError::Defect { what, message: said() });
        }
        serde_json::from_slice(&stdout)
            .map_err(|error| PythonError::Defect { what, message: format!("{error}: {}", said()) })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_step_that_a_signal_ends_leaves_its_files_in_the_directory_for_temporary_ones() {
        let python = Python::find().unwrap();
        let stage = tempfile::tempdir().unwrap();
        let (package, temporary) = (stage.path().join("package"), stage.path().join("temporary"));
        fs::create_dir_all(package.join("periapt_packing")).unwrap();
        fs::create_dir(&temporary).unwrap();
        let program = "import os, signal, tempfile\ntempfile.mkdtemp(prefix='left-')\nos.kill(os.getpid(), signal.SIGKILL)\n";
        fs::write(package.join("periapt_packing/__main__.py"), program).unwrap();
        let packing =
            Packing { python: &python, packages: [&package, &package], wheels: &[], temporary: &temporary };
        let stopped = packing.check(stage.path(), stage.path(), stage.path()).unwrap_err();
        assert!(matches!(stopped, PythonError::Stopped("checking the sources")), "{stopped}");
        let left: Vec<_> =
            fs::read_dir(&temporary).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(matches!(left.as_slice(), [name] if name.to_string_lossy().starts_with("left-")), "{left:?}");
    }
}
