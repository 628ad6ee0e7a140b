//! The manifest of a backup.

use periapt_host_api::{Revision, StoreId, Timestamp, backup::KeyDerivation};
use serde::{Deserialize, Serialize};

/// The form of backups that this version writes, and the newest that it reads.
pub(super) const FORM: u32 = 1;

/// The largest manifest, in bytes.
pub(super) const MAX_MANIFEST: u64 = 64 << 10;

/// The origin of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// The form of the file.
    pub form: u32,
    /// The version of Periapt that wrote it.
    pub version: String,
    /// The identity of the store.
    pub store: StoreId,
    /// The revision of the store.
    pub revision: Revision,
    /// The time of the backup.
    pub created: Timestamp,
    /// The derivation of the key that encrypts the controller's keys; none if the backup has no keys.
    pub keys: Option<KeyDerivation>,
}
