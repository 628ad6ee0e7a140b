//! What `periapt_packing` does with the packer's Python: it fetches dependencies and checks sources.

use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt as _,
    path::{Path, PathBuf},
    process::Output,
};

use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Choices, Finding, PythonError, choices::Repositories, parts::Required, python::Python};

/// The exit code of `periapt_packing` where it met its bound of memory.
const OUT_OF_MEMORY: i32 = 3;

/// What came of fetching dependencies.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Vendored {
    error: Option<String>,
    /// Whether that is because an index could not be asked.
    #[serde(default)]
    unreachable: bool,
    /// Files in native code that were taken out, as the check of sources reads them.
    #[serde(default)]
    pub(crate) native: Value,
    /// What was brought in, as NAME==VERSION.
    #[serde(default)]
    pub(crate) packages: Vec<String>,
    /// What was not brought in.
    #[serde(default)]
    pub(crate) findings: Vec<Finding>,
}

/// The package, where it was written to.
#[derive(Debug)]
pub(crate) struct Packing<'a> {
    pub(crate) python: &'a Python,
    /// The directories that hold `periapt_packing` and `periapt_ops`.
    pub(crate) packages: [&'a Path; 2],
    /// Directories with wheels of native code that was built for the sandbox.
    pub(crate) wheels: &'a [PathBuf],
}

impl Packing<'_> {
    /// Brings what a charm requires, as its parts say, into a directory; answers what that is. `repository` is what nothing of
    /// it may lead out of.
    pub(crate) fn vendor(
        &self,
        charm: &Path,
        repository: &Path,
        required: &Required,
        choices: &Choices,
        target: &Path,
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
        match vendored.error.take() {
            Some(error) if vendored.unreachable => Err(PythonError::Unreachable(error)),
            Some(error) => Err(PythonError::Dependencies(error)),
            None => Ok(vendored),
        }
    }

    /// What cannot work in a charm's sources, by file and line; `native` is a file with what was taken out, `original` the
    /// author's own directory.
    pub(crate) fn check(
        &self,
        charm: &Path,
        native: &Path,
        original: &Path,
    ) -> Result<Vec<Finding>, PythonError> {
        self.run("checking the sources", "check", &[charm.into(), native.into(), original.into()])
    }

    fn run<T: DeserializeOwned>(
        &self,
        what: &'static str,
        verb: &str,
        arguments: &[OsString],
    ) -> Result<T, PythonError> {
        // Directories of our own making: no name of theirs holds what separates them.
        let path = std::env::join_paths(self.packages).unwrap_or_default();
        let done = self.python.output(
            self.python.module("periapt_packing").env("PYTHONPATH", path).arg(verb).args(arguments),
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
