//! The list of a charm's compiled parts, stored so that the component need not be.

use std::{fs, io, path::Path};

use periapt_host_api::Digest;
use serde::{Deserialize, Serialize};

use super::files::Parts;

/// The compiled parts of a charm, by the digests of their sources. The file's name contains the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CompiledParts {
    /// The digest of the component.
    pub(super) component: Digest,
    /// The digests of the shared modules.
    pub(super) modules: Vec<Digest>,
}

impl From<&Parts> for CompiledParts {
    fn from(parts: &Parts) -> Self {
        let modules = parts.modules.iter().map(|module| module.digest);
        Self { component: parts.component, modules: modules.collect() }
    }
}

impl CompiledParts {
    /// Reads the list; none if the file does not exist or is invalid.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes the list to a temporary file and renames it.
    pub(super) fn write(&self, temporary: &Path, path: &Path) -> io::Result<()> {
        fs::write(temporary, serde_json::to_vec(self)?)?;
        fs::rename(temporary, path)
    }
}
