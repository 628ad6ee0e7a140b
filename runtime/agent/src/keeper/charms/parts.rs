//! Which compiled parts a charm has: kept, so that nobody has to keep the component to find that out.

use std::{fs, io, path::Path};

use periapt_host_api::Digest;
use serde::{Deserialize, Serialize};

use super::files::Parts;

/// The compiled parts of a charm, by the digests of what they were compiled from. What they were compiled for is in the
/// file's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct CompiledParts {
    /// The component's.
    pub(super) component: Digest,
    /// Those of the modules that it shares.
    pub(super) modules: Vec<Digest>,
}

impl From<&Parts> for CompiledParts {
    fn from(parts: &Parts) -> Self {
        let modules = parts.modules.iter().map(|module| module.digest);
        Self { component: parts.component, modules: modules.collect() }
    }
}

impl CompiledParts {
    /// Those that a file names; none if there is no file, or it says something else.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes them beside their place and moves them there.
    pub(super) fn write(&self, temporary: &Path, path: &Path) -> io::Result<()> {
        fs::write(temporary, serde_json::to_vec(self)?)?;
        fs::rename(temporary, path)
    }
}
