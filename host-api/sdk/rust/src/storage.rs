//! Storage of a unit: directories that outlive its hooks.

use std::path::{Path, PathBuf};

use crate::{Error, Result, host};

/// An attached instance of storage. Writes to it stay even if the hook fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    id: String,
    location: PathBuf,
}

impl Storage {
    /// Returns the id, `NAME/NUMBER`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the directory, for `std::fs`.
    pub fn location(&self) -> &Path {
        &self.location
    }

    pub(crate) fn find(id: &str) -> Result<Self> {
        let info = host::storage::get(id).map_err(Error::refused)?;
        Ok(Self { id: id.to_owned(), location: info.location.into() })
    }
}
