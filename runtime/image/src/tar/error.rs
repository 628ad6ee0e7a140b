//! Errors of a tar.

use std::{borrow::Cow, io};

use crate::shown::shown;

/// A tar that is not read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TarError {
    /// The source of its bytes fails.
    #[error("{0}")]
    Read(#[source] io::Error),
    /// A file cannot be written on this host.
    #[error("{0}")]
    Write(#[source] io::Error),
    /// The tar is damaged.
    #[error("{0}")]
    Stream(&'static str),
    /// One entry is refused.
    #[error("{}: {reason}", shown(path))]
    Entry {
        /// Its path, as the tar has it.
        path: String,
        /// The mistake.
        reason: Cow<'static, str>,
    },
}

impl TarError {
    pub(crate) fn entry(path: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Self::Entry { path: path.to_owned(), reason: reason.into() }
    }

    /// Names the entry in which a tar is damaged.
    pub(crate) fn within(error: Self, path: &str) -> Self {
        match error {
            Self::Stream(reason) => Self::entry(path, reason),
            other => other,
        }
    }
}
