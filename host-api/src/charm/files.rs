//! The files that hold a charm's metadata, and which of them is read.

use super::MetadataError;

pub(super) const CHARMCRAFT: &str = "charmcraft.yaml";
pub(super) const METADATA: &str = "metadata.yaml";
pub(super) const CONFIG: &str = "config.yaml";
pub(super) const ACTIONS: &str = "actions.yaml";

/// The metadata files of a charm's directory or archive, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CharmFiles {
    /// `charmcraft.yaml`: all in one.
    pub charmcraft: Option<String>,
    /// `metadata.yaml`
    pub metadata: Option<String>,
    /// `config.yaml`
    pub config: Option<String>,
    /// `actions.yaml`
    pub actions: Option<String>,
}

impl CharmFiles {
    /// The file that holds the metadata, with its name.
    pub(super) fn main(&self) -> Result<(&'static str, &str), MetadataError> {
        match (&self.charmcraft, &self.metadata) {
            // charmcraft.yaml of an older project holds build settings only; then metadata.yaml is the charm's.
            (_, Some(text)) => Ok((METADATA, text)),
            (Some(text), None) => Ok((CHARMCRAFT, text)),
            (None, None) => Err(MetadataError::Missing),
        }
    }
}
