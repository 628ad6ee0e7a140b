//! Errors of images.

use std::{
    io,
    path::{Path, PathBuf},
};

use periapt_host_api::Digest;

use crate::{platform::ImagePlatform, shown::shown, tar::TarError, verified::Mismatch};

/// An image that is refused, or that this host cannot read or write.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// A file or directory of this host cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// A file or directory of this host cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The file is no image in a form that is read here.
    #[error("this is no image: {0}")]
    NotAnImage(String),
    /// An index, manifest or configuration is invalid.
    #[error("{document}: {reason}")]
    Document {
        /// The document in words, such as `index.json`.
        document: String,
        /// The mistake.
        reason: String,
    },
    /// The image has something in a form that is not read here.
    #[error("{part} is of the media type {}: {reason}", shown(found))]
    MediaType {
        /// The part of the image.
        part: String,
        /// The media type.
        found: String,
        /// The forms that are read, or the reason why this one is not.
        reason: &'static str,
    },
    /// The image is for other hosts.
    #[error("the image is for {found}, and {wanted} is wanted")]
    Platform {
        /// The platforms of the image.
        found: String,
        /// The platform that is wanted.
        wanted: ImagePlatform,
    },
    /// The file has several images, and none was chosen, or one that it does not have.
    #[error("{0}")]
    Choice(String),
    /// A blob is missing, damaged or too large.
    #[error("{part} sha256:{digest}: {reason}")]
    Blob {
        /// The part of the image.
        part: &'static str,
        /// The digest by which the image names it.
        digest: Digest,
        /// The mistake.
        reason: String,
    },
    /// A layer has content that is refused.
    #[error("layer {number} (sha256:{digest}): {reason}")]
    Layer {
        /// The layer's number, from 1.
        number: usize,
        /// The digest of the unpacked layer, as the configuration has it.
        digest: Digest,
        /// The mistake.
        reason: String,
    },
    /// The layers do not fit onto each other.
    #[error("the layers: {0}")]
    Layers(String),
}

impl ImageError {
    /// Returns true if the host failed. Otherwise the image is refused, and will be again.
    pub fn is_of_host(&self) -> bool {
        matches!(self, Self::Read { .. } | Self::Write { .. })
    }

    pub(crate) fn read(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Read { path: path.to_owned(), source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        |source| Self::Write { path: path.to_owned(), source }
    }

    pub(crate) fn document(document: &str, reason: impl ToString) -> Self {
        Self::Document { document: shown(document), reason: shown(&reason.to_string()) }
    }

    /// Returns the error of a layer whose tar is not read. `source` and `target` are the files of this host.
    pub(crate) fn layer(
        (number, digest): (usize, Digest),
        error: TarError,
        (source, target): (&Path, &Path),
    ) -> Self {
        match error {
            TarError::Write(error) => Self::write(target)(error),
            TarError::Read(error) if is_of_host(&error) => Self::read(source)(error),
            other => Self::Layer { number, digest, reason: other.to_string() },
        }
    }
}

/// Returns true for an error of the system, which no decoder makes.
pub(crate) fn is_of_host(error: &io::Error) -> bool {
    error.raw_os_error().is_some() && !error.get_ref().is_some_and(|inner| inner.is::<Mismatch>())
}
