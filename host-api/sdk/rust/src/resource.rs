//! Resources: files that the operator attaches to the application.

use std::path::{Path, PathBuf};

use crate::{Error, Result, host};

/// The file of a resource, as it is for the whole of this hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    path: PathBuf,
    revision: u32,
    size: u64,
    sha256: String,
}

impl Resource {
    /// Where it is: `std::fs` reads it as any other file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Rises by one with each content that is attached: kept in the unit's state, it tells whether there is news.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// Bytes of its content.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The SHA-256 of its content, in 64 hex digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub(crate) fn find(name: &str) -> Result<Self> {
        let file = host::resources::get(name).map_err(Error::refused)?;
        let path = file.path.into();
        Ok(Self { path, revision: file.revision, size: file.size, sha256: file.sha256 })
    }
}
