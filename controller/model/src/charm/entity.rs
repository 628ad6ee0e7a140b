//! The charm entities.

use std::collections::BTreeMap;

use periapt_host_api::{Digest, Timestamp, charm::CharmMeta};
use serde::{Deserialize, Serialize};

use crate::user::uploaders::Uploaders;

/// The version of the reader of charms' metadata. It rises with each release that keeps more of the same archive. A
/// charm that an earlier one read is read again when it is uploaded again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MetaReader(pub u32);

impl MetaReader {
    /// The first one. It checked `containers` and kept nothing of them.
    pub const FIRST: Self = Self(0);
    /// This program's reader.
    pub const NEWEST: Self = Self(1);

    pub(crate) fn is_first(&self) -> bool {
        *self == Self::FIRST
    }
}

/// An uploaded charm. It was checked, and its archive is stored as a blob.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Charm {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest, inside the archive.
    pub component: Digest,
    /// The metadata that the charm declares.
    pub meta: CharmMeta,
    /// The size of the archive, in bytes.
    pub size: u64,
    /// The time of its first upload.
    pub uploaded_at: Timestamp,
    /// The users who uploaded it.
    #[serde(default, skip_serializing_if = "Uploaders::is_empty")]
    pub uploaders: Uploaders,
    /// The reader of the metadata.
    #[serde(default, skip_serializing_if = "MetaReader::is_first")]
    pub reader: MetaReader,
}

impl Charm {
    /// Returns true if a reader's metadata of the same archive is the same, but for what one of the two readers drops.
    pub(crate) fn agrees_with(&self, meta: &CharmMeta, reader: MetaReader) -> bool {
        let kept_by_both = |meta: &CharmMeta| CharmMeta { containers: BTreeMap::new(), ..meta.clone() };
        self.meta == *meta || (self.reader != reader && kept_by_both(&self.meta) == kept_by_both(meta))
    }
}

/// A charm that a model uses, or keeps because an application had it before (M-13, M-15).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ModelCharm {
    /// The archive's digest.
    pub digest: Digest,
    /// The charm's revision among the model's charms of this name. It is never reused.
    pub revision: u64,
}
