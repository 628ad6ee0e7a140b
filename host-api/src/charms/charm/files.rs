//! The files that hold a charm's metadata, and the choice of the one to read.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;

use super::{
    MetadataError,
    error::{read, rule},
};

pub(super) const CHARMCRAFT: &str = "charmcraft.yaml";
pub(super) const METADATA: &str = "metadata.yaml";
pub(super) const CONFIG: &str = "config.yaml";
pub(super) const ACTIONS: &str = "actions.yaml";

/// The key that only Periapt reads.
pub(super) const EXTENSION: &str = "x-periapt";

/// Keys of `charmcraft.yaml` that describe the charm. All other keys are build and publishing settings.
const OF_THE_CHARM: [&str; 20] = [
    "name",
    "summary",
    "description",
    "subordinate",
    "provides",
    "requires",
    "peers",
    "extra-bindings",
    "storage",
    "resources",
    "devices",
    "containers",
    "config",
    "actions",
    "assumes",
    "charm-user",
    "series",
    "deployment",
    "min-juju-version",
    EXTENSION,
];

/// The metadata files of a charm's directory or archive, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CharmFiles {
    /// `charmcraft.yaml`, which can hold all metadata.
    pub charmcraft: Option<String>,
    /// `metadata.yaml`.
    pub metadata: Option<String>,
    /// `config.yaml`.
    pub config: Option<String>,
    /// `actions.yaml`.
    pub actions: Option<String>,
}

impl CharmFiles {
    /// Returns the file that holds the metadata, with its name. Beside `metadata.yaml`, `charmcraft.yaml` may hold
    /// build settings only: one of two definitions would be ignored silently.
    pub(super) fn main(&self) -> Result<(&'static str, &str), MetadataError> {
        let (metadata, charmcraft) = match (&self.metadata, &self.charmcraft) {
            (None, None) => return Err(MetadataError::Missing),
            (None, Some(charmcraft)) => return Ok((CHARMCRAFT, charmcraft)),
            (Some(metadata), None) => return Ok((METADATA, metadata)),
            (Some(metadata), Some(charmcraft)) => (metadata, charmcraft),
        };
        let keys: Option<BTreeMap<String, IgnoredAny>> = read(CHARMCRAFT, charmcraft)?;
        let keys = keys.unwrap_or_default();
        let twice: Vec<_> = OF_THE_CHARM.into_iter().filter(|key| keys.contains_key(*key)).collect();
        match twice.is_empty() {
            true => Ok((METADATA, metadata)),
            false => {
                let message = format!(
                    "{} cannot stand here beside a {METADATA}; move them there (options to {CONFIG}, actions to \
                     {ACTIONS}), or remove {METADATA}",
                    twice.join(", ")
                );
                Err(rule(CHARMCRAFT, message))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::charm::CharmMeta;

    const METADATA_YAML: &str = "name: c\nsummary: s\ndescription: d\n";

    fn beside(charmcraft: &str) -> Result<CharmMeta, String> {
        let files = CharmFiles {
            metadata: Some(METADATA_YAML.into()),
            charmcraft: Some(charmcraft.into()),
            ..CharmFiles::default()
        };
        CharmMeta::parse(&files).map_err(|error| error.to_string())
    }

    #[test]
    fn metadata_in_two_files_is_refused_whatever_it_says() {
        let error = beside(METADATA_YAML).unwrap_err();
        assert!(
            error.starts_with("charmcraft.yaml: name, summary, description cannot stand here"),
            "{error}"
        );
        let error = beside("type: charm\nconfig: {options: {port: {type: int}}}\n").unwrap_err();
        assert!(
            error.starts_with("charmcraft.yaml: config cannot stand here beside a metadata.yaml"),
            "{error}"
        );
    }

    #[test]
    fn build_settings_stand_beside_the_metadata() {
        for text in
            ["", "# nothing\n", "type: charm\nbases: [{name: ubuntu}]\nparts: {charm: {plugin: charm}}\n"]
        {
            assert_eq!(beside(text).unwrap().name, "c", "{text:?}");
        }
        assert!(beside("type: [\n").unwrap_err().starts_with("charmcraft.yaml: line "));
    }
}
