//! Resources: files that the operator attaches to the application.

use std::path::{Path, PathBuf};

use crate::{Error, Result, host};

/// The file of a resource. It does not change during a hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    path: PathBuf,
    revision: u32,
    size: u64,
    sha256: String,
}

impl Resource {
    /// Returns the path of the file, for `std::fs`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the revision, which rises by one with each attached content. A charm that keeps it in the unit's state
    /// detects new content.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// Returns the size of the content, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the SHA-256 of the content, in 64 hex digits.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    pub(crate) fn find(name: &str) -> Result<Self> {
        let file = host::resources::get(name).map_err(Error::refused)?;
        let path = file.path.into();
        Ok(Self { path, revision: file.revision, size: file.size, sha256: file.sha256 })
    }
}
