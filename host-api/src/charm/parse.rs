//! Reading metadata files.

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

/// Why a charm's metadata was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Neither of the two forms is there.
    #[error("no charmcraft.yaml and no metadata.yaml")]
    Missing,
}
