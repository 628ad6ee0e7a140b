//! What `periapt_ops.packing` does with the packer's Python: it fetches dependencies and checks sources.

use std::{ffi::OsString, path::Path, process::Output};

use serde::{Deserialize, de::DeserializeOwned};

use crate::{Finding, NativeCode, PythonError, python::Python};

/// What came of fetching dependencies.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct Vendored {
    error: Option<String>,
    #[serde(default)]
    native: Vec<NativeCode>,
    /// `NAME==VERSION`
    #[serde(default)]
    installed: Vec<String>,
}

/// The package, where it was written to.
#[derive(Debug)]
pub(crate) struct Packing<'a> {
    pub(crate) python: &'a Python,
    /// The directory that holds `periapt_ops`.
    pub(crate) package: &'a Path,
}

impl Packing<'_> {
    /// Brings what a charm requires into a directory; answers what that is.
    pub(crate) fn vendor(&self, charm: &Path, target: &Path) -> Result<Vec<String>, PythonError> {
        let what = "fetching dependencies";
        let vendored: Vendored = self.run(what, "vendor", &[charm.into(), target.into()])?;
        match vendored {
            Vendored { error: Some(error), .. } => Err(PythonError::Dependencies(error)),
            Vendored { native, .. } if !native.is_empty() => Err(PythonError::Native(native)),
            Vendored { installed, .. } => Ok(installed),
        }
    }

    /// What cannot work in a charm's sources, by file and line.
    pub(crate) fn check(&self, charm: &Path) -> Result<Vec<Finding>, PythonError> {
        self.run("checking the sources", "check", &[charm.into()])
    }

    fn run<T: DeserializeOwned>(
        &self,
        what: &'static str,
        verb: &str,
        arguments: &[OsString],
    ) -> Result<T, PythonError> {
        let done = self.python.output(
            self.python
                .module("periapt_ops.packing")
                .env("PYTHONPATH", self.package)
                .arg(verb)
                .args(arguments),
        )?;
        let Output { status, stdout, stderr } = done;
        let said = || String::from_utf8_lossy(&stderr).trim().to_owned();
        if !status.success() {
            return Err(PythonError::Defect { what, message: said() });
        }
        serde_json::from_slice(&stdout)
            .map_err(|error| PythonError::Defect { what, message: format!("{error}: {}", said()) })
    }
}
