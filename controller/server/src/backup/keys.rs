//! The keys of a controller in a backup, encrypted by a key that is derived from a passphrase or chosen at random.

use std::path::Path;

use argon2::{Algorithm, Argon2, Params, Version};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use periapt_host_api::{
    Digest,
    backup::{KEY_BYTES, KeyDerivation, WrappingKey},
    password::Password,
};
use periapt_transport::{Readers, read_file, write_file};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::{Deserialize, Serialize};

use super::error::BackupError;
use crate::seal::SealKey;

/// The largest encrypted keys, in bytes.
pub(super) const MAX_KEYS: u64 = 256 << 10;
/// The memory of a new derivation in KiB, its passes and its lanes: a backup lies where an attacker can try for years.
const NEW: (u32, u32, u32) = (64 << 10, 3, 1);
/// The most memory in KiB, passes and lanes that a file may ask for.
const MOST: (u32, u32, u32) = (1 << 20, 64, 16);
/// The bytes of a salt.
const SALT_BYTES: usize = 16;

/// The files of the keys, in the controller's directory.
const SECRET_KEY: &str = "secret-key";
const CA_KEY: &str = "ca-key.pem";
const CA: &str = "ca.pem";

/// The keys of a controller. Debug output does not show them.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupKeys {
    /// The key of secrets, as base64.
    secret_key: String,
    /// The key of the authority.
    ca_key: String,
    /// The certificate of the authority.
    ca: String,
}

impl std::fmt::Debug for BackupKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("BackupKeys(..)")
    }
}

impl BackupKeys {
    /// Reads the keys of a controller's directory.
    ///
    /// # Errors
    /// [`BackupError::Keys`] names the missing file.
    pub fn in_directory(directory: &Path) -> Result<Self, BackupError> {
        let secret = directory.join(SECRET_KEY);
        let bytes = std::fs::read(&secret)
            .map_err(|error| BackupError::Keys(format!("{}: {error}", secret.display())))?;
        let pem = |name: &str, readers| {
            let path = directory.join(name);
            let read = read_file(&path, readers).map_err(|error| BackupError::Keys(error.to_string()))?;
            read.ok_or_else(|| BackupError::Keys(format!("{} is missing", path.display())))
        };
        let keys = Self {
            secret_key: STANDARD.encode(bytes),
            ca_key: pem(CA_KEY, Readers::Owner)?,
            ca: pem(CA, Readers::All)?,
        };
        keys.secret().map(|_| keys)
    }

    /// Writes the keys into a controller's directory.
    pub(super) fn write(&self, directory: &Path) -> Result<(), BackupError> {
        let path = directory.join(SECRET_KEY);
        crate::seal::write_key(&path, &self.secret()?)
            .map_err(|source| BackupError::Unwritable { path, source })?;
        for (name, text, readers) in [(CA_KEY, &self.ca_key, Readers::Owner), (CA, &self.ca, Readers::All)] {
            let written = write_file(&directory.join(name), text, readers);
            written.map_err(|error| BackupError::Keys(error.to_string()))?;
        }
        Ok(())
    }

    /// Returns the fingerprint by which the controllers of a log tell that they share these keys.
    ///
    /// # Errors
    /// [`BackupError::Keys`]
    pub fn fingerprint(&self) -> Result<Digest, BackupError> {
        let key = SealKey::new(&self.secret()?).map_err(|error| BackupError::Keys(error.to_string()))?;
        Ok(key.fingerprint(&self.ca))
    }

    fn secret(&self) -> Result<[u8; KEY_BYTES], BackupError> {
        let bytes = STANDARD.decode(&self.secret_key).ok().and_then(|bytes| bytes.try_into().ok());
        bytes.ok_or_else(|| BackupError::Keys(format!("{SECRET_KEY} does not have {KEY_BYTES} bytes")))
    }

    /// Encrypts the keys, bound to the manifest of the backup.
    pub(super) fn encrypt(&self, key: &WrappingKey, manifest: &[u8]) -> Result<Vec<u8>, BackupError> {
        let failed = || BackupError::Keys("they cannot be encrypted".to_owned());
        // Each backup has a salt or a random key of its own, so each key encrypts once, unless a client sends one again.
        let mut nonce = [0; NONCE_LEN];
        getrandom::fill(&mut nonce).map_err(|_| failed())?;
        let mut text = serde_json::to_vec(self).map_err(|_| failed())?;
        let unique = Nonce::assume_unique_for_key(nonce);
        cipher(key)?
            .seal_in_place_append_tag(unique, Aad::from(manifest), &mut text)
            .map_err(|_| failed())?;
        Ok([nonce.as_slice(), text.as_slice()].concat())
    }

    /// Decrypts keys; none if the key is another one, or any byte was changed.
    pub(super) fn decrypt(encrypted: &[u8], key: &WrappingKey, manifest: &[u8]) -> Option<Self> {
        let (nonce, text) = encrypted.split_first_chunk::<NONCE_LEN>()?;
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let opened = cipher(key).ok()?.open_in_place(nonce, Aad::from(manifest), &mut text).ok()?;
        serde_json::from_slice(opened).ok()
    }
}

fn cipher(key: &WrappingKey) -> Result<LessSafeKey, BackupError> {
    let unbound = UnboundKey::new(&CHACHA20_POLY1305, key.reveal());
    Ok(LessSafeKey::new(unbound.map_err(|_| BackupError::Keys("the cipher takes no such key".to_owned()))?))
}

/// Returns the derivation of a new backup's key, with a random salt.
///
/// # Errors
/// [`BackupError::Derivation`] if the system has no randomness.
pub fn new_derivation() -> Result<KeyDerivation, BackupError> {
    let mut salt = [0; SALT_BYTES];
    getrandom::fill(&mut salt).map_err(|error| BackupError::Derivation(error.to_string()))?;
    let (memory_kib, passes, lanes) = NEW;
    Ok(KeyDerivation { salt: hex::encode(salt), memory_kib, passes, lanes })
}

/// Derives a key from a passphrase. Takes a part of a second and some memory, by design.
///
/// # Errors
/// [`BackupError::Derivation`] for a derivation that is out of bounds.
pub fn derive_key(passphrase: &Password, derivation: &KeyDerivation) -> Result<WrappingKey, BackupError> {
    let KeyDerivation { salt, memory_kib, passes, lanes } = derivation;
    let out = |text: &str| BackupError::Derivation(text.to_owned());
    if (*memory_kib > MOST.0) || (*passes > MOST.1) || (*lanes > MOST.2) {
        return Err(out("the file asks for too much memory or time"));
    }
    let salt = hex::decode(salt).map_err(|_| out("the salt is not hexadecimal"))?;
    if salt.len() != SALT_BYTES {
        return Err(out("the salt has another length"));
    }
    let params = Params::new(*memory_kib, *passes, *lanes, Some(KEY_BYTES));
    let params = params.map_err(|error| BackupError::Derivation(error.to_string()))?;
    let mut key = [0; KEY_BYTES];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase.reveal().as_bytes(), &salt, &mut key)
        .map_err(|error| BackupError::Derivation(error.to_string()))?;
    Ok(WrappingKey::new(key))
}
