//! Why a charm could not be built.

use std::{io, path::PathBuf};

/// Why there is no code.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// Sources of more than one language.
    #[error("{} has sources of several languages: {}", directory.display(), marks.join(", "))]
    SeveralLanguages {
        /// The charm's directory.
        directory: PathBuf,
        /// The files that say so.
        marks: Vec<String>,
    },
    /// A place for a new charm that has something in it.
    #[error("{} is not empty", directory.display())]
    NotEmpty {
        /// Which.
        directory: PathBuf,
    },
    /// A program that has to be there.
    #[error("{program} is needed {purpose}, and is not there")]
    MissingTool {
        /// Which.
        program: String,
        /// What for: `to pack charms in JavaScript`.
        purpose: &'static str,
        /// How to get it.
        hint: &'static str,
    },
    /// A program that is there, and too old.
    #[error("{program} is needed {purpose}, in version {wanted} or newer; there is {found}")]
    OldTool {
        /// Which.
        program: String,
        /// What for.
        purpose: &'static str,
        /// The oldest version that does.
        wanted: &'static str,
        /// The one that is there.
        found: String,
    },
    /// A program did not do what it was asked.
    #[error("{what} failed\n{output}")]
    Failed {
        /// What was being done.
        what: String,
        /// The end of what it said.
        output: String,
    },
    /// Files that cannot be read or written.
    #[error("{}: {source}", path.display())]
    Files {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl BuildError {
    /// What to do about it, where that is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::SeveralLanguages { .. } => {
                Some("keep the sources of one, or build it yourself and name what was built with --wasm")
            }
            Self::NotEmpty { .. } => Some("name a directory that is not there yet"),
            Self::MissingTool { hint, .. } => Some(hint),
            Self::OldTool { .. } => Some("install a newer version, or put it first in PATH"),
            Self::Failed { .. } | Self::Files { .. } => None,
        }
    }

    /// For `map_err` on what is done with a file.
    pub(crate) fn files(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Files { path, source }
    }
}
