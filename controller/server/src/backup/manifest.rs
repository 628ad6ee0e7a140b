//! The manifest of a backup.

use periapt_host_api::{
    Revision, StoreId, Timestamp,
    backup::{BaseBackup, KeyDerivation, KeySource},
};
use serde::{Deserialize, Serialize};

/// The form of backups that this version writes, and the newest that it reads.
pub(super) const FORM: u32 = 2;

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
    /// The way to the key that encrypts the controller's keys; none if the backup has no keys.
    pub keys: Option<KeySource>,
    /// The backup that this one builds on; none if it is full.
    pub base: Option<BaseBackup>,
}

/// A manifest of form 1, which knew passphrases and full backups alone.
#[derive(Deserialize)]
struct FirstForm {
    form: u32,
    version: String,
    store: StoreId,
    revision: Revision,
    created: Timestamp,
    keys: Option<KeyDerivation>,
}

impl BackupManifest {
    /// Reads a manifest of a known form.
    pub(super) fn read(form: u32, text: &[u8]) -> serde_json::Result<Self> {
        if form >= 2 {
            return serde_json::from_slice(text);
        }
        let FirstForm { form, version, store, revision, created, keys } = serde_json::from_slice(text)?;
        Ok(Self {
            form,
            version,
            store,
            revision,
            created,
            keys: keys.map(KeySource::Passphrase),
            base: None,
        })
    }

    /// Returns the number of backups that this one builds on, one on the other.
    pub(super) fn depth(&self) -> u32 {
        self.base.as_ref().map_or(0, |base| base.depth.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_the_first_form_is_read() {
        let text = br#"{
            "form": 1, "version": "0.1.0", "store": "3f0c2b0e-7f5c-4a53-9d55-0d8a3f5c1e2a", "revision": 211,
            "created": "2026-11-23T09:41:44Z",
            "keys": { "salt": "00112233445566778899aabbccddeeff", "memory_kib": 65536, "passes": 3, "lanes": 1 }
        }"#;
        let manifest = BackupManifest::read(1, text).unwrap();
        let Some(KeySource::Passphrase(derivation)) = &manifest.keys else { panic!("{manifest:?}") };
        assert_eq!((manifest.revision, derivation.passes, manifest.depth()), (Revision(211), 3, 0));
        assert!(BackupManifest::read(2, text).is_err(), "the second form says which way leads to the key");
    }
}
