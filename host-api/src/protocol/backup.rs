//! Backups of a controller: the request for one. `docs/backup.md` describes the file.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// A request for a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// The encryption of the controller's keys. Without it the backup has none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyEncryption>,
}

/// The encryption of a backup's keys by a key that the client derived from a passphrase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyEncryption {
    /// The derived key. It is not stored.
    pub key: WrappingKey,
    /// The derivation, which the backup names.
    pub derivation: KeyDerivation,
}

/// The derivation of a key from a passphrase by argon2id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KeyDerivation {
    /// The salt, in hexadecimal digits.
    pub salt: String,
    /// The memory, in KiB.
    pub memory_kib: u32,
    /// The passes over the memory.
    pub passes: u32,
    /// The lanes.
    pub lanes: u32,
}

/// A key that encrypts other keys, as 64 hexadecimal digits. Debug output does not show it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WrappingKey([u8; KEY_BYTES]);

impl WrappingKey {
    /// Makes a key of its bytes.
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes. The caller keeps them out of logs and errors.
    pub fn reveal(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

/// A text that is no key. The error does not repeat the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a key has {} hexadecimal digits", KEY_BYTES * 2)]
pub struct WrappingKeyError;

impl TryFrom<String> for WrappingKey {
    type Error = WrappingKeyError;
    fn try_from(text: String) -> Result<Self, WrappingKeyError> {
        let mut bytes = [0; KEY_BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| WrappingKeyError)?;
        Ok(Self(bytes))
    }
}

impl From<WrappingKey> for String {
    fn from(key: WrappingKey) -> Self {
        hex::encode(key.0)
    }
}

/// Hides the key.
impl fmt::Debug for WrappingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WrappingKey(..)")
    }
}
