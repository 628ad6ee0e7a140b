//! The errors of metadata files.

use crate::{
    NameError, excerpt,
    yaml::{self, YamlError},
};

/// A charm's metadata that was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// Neither form of metadata exists.
    #[error("no charmcraft.yaml and no metadata.yaml: a charm needs one of them")]
    Missing,
    /// The file is no YAML, or has an unexpected shape.
    #[error("{file}: {source}")]
    Yaml {
        /// The file.
        file: &'static str,
        /// The mistake and its place.
        source: YamlError,
    },
    /// A required field is absent or empty.
    #[error("{file}: {field} is missing")]
    MissingField {
        /// The file.
        file: &'static str,
        /// The field.
        field: &'static str,
    },
    /// A text is no valid name.
    #[error("{file}: {source}")]
    Name {
        /// The file.
        file: &'static str,
        /// The name and the rule that it breaks.
        source: NameError,
    },
    /// The file breaks a rule.
    #[error("{file}: {message}")]
    Rule {
        /// The file.
        file: &'static str,
        /// The rule, in Juju's words where it has some.
        message: String,
    },
}

pub(super) fn read<T: serde::de::DeserializeOwned>(
    file: &'static str,
    text: &str,
) -> Result<T, MetadataError> {
    yaml::parse(text).map_err(|source| MetadataError::Yaml { file, source })
}

/// Returns an error about a file, with quoted parts of the message shortened.
pub(super) fn rule(file: &'static str, message: impl AsRef<str>) -> MetadataError {
    MetadataError::Rule { file, message: excerpt::of_message(message.as_ref()) }
}
