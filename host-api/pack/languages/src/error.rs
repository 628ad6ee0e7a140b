//! Errors of building charms.

use std::{io, path::PathBuf};

/// A charm that could not be built.
#[derive(Debug, thiserror::Error)]
pub enum CharmBuildError {
    /// The directory has sources of several languages.
    #[error("{} has sources of several languages: {}", directory.display(), marks.join(", "))]
    SeveralLanguages {
        /// The charm's directory.
        directory: PathBuf,
        /// The files that mark the languages.
        marks: Vec<String>,
    },
    /// The directory for a new charm is not empty.
    #[error("{} is not empty", directory.display())]
    NotEmpty {
        /// The directory.
        directory: PathBuf,
    },
    /// A program is missing.
    #[error("{program} is needed {purpose}, and is not installed")]
    MissingTool {
        /// The program.
        program: String,
        /// The purpose: `to pack charms in JavaScript`.
        purpose: &'static str,
        /// The installation hint.
        hint: &'static str,
    },
    /// A program is too old.
    #[error("{program} is needed {purpose}, in version {wanted} or newer; there is {found}")]
    OldTool {
        /// The program.
        program: String,
        /// The purpose.
        purpose: &'static str,
        /// The oldest version that works.
        wanted: &'static str,
        /// The installed version.
        found: String,
    },
    /// A program failed.
    #[error("{what} failed\n{output}")]
    Failed {
        /// The step that failed.
        what: String,
        /// The first and last lines of the program's output.
        output: String,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// The path of the file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

impl CharmBuildError {
    /// Returns advice for the operator, if there is any.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::SeveralLanguages { .. } => {
                Some("keep the sources of one, or build it yourself and pass the module with --wasm")
            }
            Self::NotEmpty { .. } => Some("name a directory that does not exist yet"),
            Self::MissingTool { hint, .. } => Some(hint),
            Self::OldTool { .. } => Some("install a newer version, or put it first in PATH"),
            Self::Failed { .. } | Self::Files { .. } => None,
        }
    }

    /// Returns a function for `map_err` on file operations.
    pub(crate) fn files(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { path, source }
    }
}
