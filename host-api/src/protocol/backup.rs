//! Backups of a controller: the request for one. `docs/backup.md` describes the file.

use std::{collections::BTreeSet, fmt};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Digest, Revision, StoreId};

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The largest [`WrappedKey`], in bytes.
pub const MAX_WRAPPED_KEY: usize = 16 << 10;

/// The longest name of the file of a backup that others build on, in bytes: as long as file systems allow.
pub const MAX_FILENAME: usize = 255;

/// The most backups that an incremental backup may build on, one on the other.
pub const MAX_DEPTH: u32 = 100;

/// A request for a backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupRequest {
    /// The encryption of the controller's keys. Without it the backup has none of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<KeyEncryption>,
    /// The backup that this one builds on, with its contents. Without it the backup is full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseContents>,
}

/// A backup that an incremental one builds on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BaseBackup {
    /// The name of the file, as a help for the person who restores; at most [`MAX_FILENAME`] bytes.
    pub filename: String,
    /// The identity of the store.
    pub store: StoreId,
    /// The revision of the store.
    pub revision: Revision,
    /// The digest of the whole file.
    pub digest: Digest,
    /// The number of backups that it builds on itself, one on the other: 0 if it is full.
    pub depth: u32,
}

/// The contents of a backup that another one may leave out, in this backup or in those that it builds on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseContents {
    /// The backup.
    pub backup: BaseBackup,
    /// The files of the store.
    pub files: Vec<BaseFile>,
    /// The archives of charms.
    pub charms: BTreeSet<Digest>,
    /// The contents of resources.
    pub resources: BTreeSet<Digest>,
}

/// A file of the store in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BaseFile {
    /// The name of the file.
    pub name: String,
    /// The digest of its content.
    pub digest: Digest,
}

/// The encryption of a backup's keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "KeyEncryptionWire", into = "KeyEncryptionWire")]
#[schemars(with = "KeyEncryptionWire")]
pub struct KeyEncryption {
    /// The key that encrypts. It is not stored.
    pub key: WrappingKey,
    /// The way back to the key, which the backup has.
    pub source: KeySource,
}

/// The way to the key that encrypts a backup's keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum KeySource {
    /// The client derived it from a passphrase.
    Passphrase(KeyDerivation),
    /// The client chose it at random, and encrypted it to recipients.
    Recipients(WrappedKey),
}

/// The form of a [`KeyEncryption`] on the wire: exactly one of `derivation` and `recipients` is given.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KeyEncryptionWire {
    /// The key that encrypts, as 64 hexadecimal digits. It is not stored.
    key: WrappingKey,
    /// The derivation of the key from a passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    derivation: Option<KeyDerivation>,
    /// The key, encrypted to recipients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recipients: Option<WrappedKey>,
}

/// A key that says neither or both ways back to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a backup's key has either a derivation or recipients")]
pub struct KeySourceError;

impl TryFrom<KeyEncryptionWire> for KeyEncryption {
    type Error = KeySourceError;
    fn try_from(wire: KeyEncryptionWire) -> Result<Self, KeySourceError> {
        let source = match (wire.derivation, wire.recipients) {
            (Some(derivation), None) => KeySource::Passphrase(derivation),
            (None, Some(wrapped)) => KeySource::Recipients(wrapped),
            _ => return Err(KeySourceError),
        };
        Ok(Self { key: wire.key, source })
    }
}

impl From<KeyEncryption> for KeyEncryptionWire {
    fn from(encryption: KeyEncryption) -> Self {
        let (derivation, recipients) = match encryption.source {
            KeySource::Passphrase(derivation) => (Some(derivation), None),
            KeySource::Recipients(wrapped) => (None, Some(wrapped)),
        };
        Self { key: encryption.key, derivation, recipients }
    }
}

/// A key that is encrypted to recipients: an age file with ASCII armour, which `age --decrypt` reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct WrappedKey(String);

/// A text that is no wrapped key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrappedKeyError {
    /// It is too large.
    #[error("a key that is encrypted to recipients has at most {MAX_WRAPPED_KEY} bytes")]
    TooLarge,
    /// It has other characters than armour.
    #[error("a key that is encrypted to recipients is ASCII text")]
    NotText,
}

impl WrappedKey {
    /// Returns the armoured text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for WrappedKey {
    type Error = WrappedKeyError;
    fn try_from(text: String) -> Result<Self, WrappedKeyError> {
        if text.len() > MAX_WRAPPED_KEY {
            return Err(WrappedKeyError::TooLarge);
        }
        let is_text = text.bytes().all(|byte| byte.is_ascii_graphic() || matches!(byte, b' ' | b'\n'));
        if is_text { Ok(Self(text)) } else { Err(WrappedKeyError::NotText) }
    }
}

impl From<WrappedKey> for String {
    fn from(key: WrappedKey) -> Self {
        key.0
    }
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
