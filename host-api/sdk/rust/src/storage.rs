//! Storage of a unit: directories that outlive its hooks.

use std::path::{Path, PathBuf};

use crate::{Error, Result, host};

/// An instance of storage that can be used. What is written there stays, whatever becomes of the hook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    id: String,
    location: PathBuf,
}

impl Storage {
    /// `NAME/NUMBER`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Its directory; the files in it are used by `std::fs` as any other.
    pub fn location(&self) -> &Path {
        &self.location
    }

    pub(crate) fn find(id: &str) -> Result<Self> {
        let info = host::storage::get(id).map_err(Error::refused)?;
        Ok(Self { id: id.to_owned(), location: info.location.into() })
    }
}
