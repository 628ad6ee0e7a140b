//! The controller's key. It encrypts confidential data, and is kept outside of the database
//! (`docs/design/secrets.md`).

use std::{
    fs::{self, OpenOptions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::Arc,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use periapt_host_api::{
    Digest, ErrorCode, ModelUuid, Refusal,
    journal::JournalRecord,
    secret::{Sealed, SealedFor, SecretData},
};
use periapt_model::{Input, Root, Sealer, open_content, open_journal, seal_input};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hmac,
};

use crate::clock::RandomSource;

/// The bytes of a key.
const KEY_BYTES: usize = 32;

/// The controller's key. Its debug output does not show it.
#[derive(Clone)]
pub struct SealKey {
    digest: hmac::Key,
    requests: hmac::Key,
    cipher: Arc<LessSafeKey>,
    /// The bytes that both are derived from.
    secret: [u8; KEY_BYTES],
    /// The file of a new key, and its bytes, until they are written.
    unwritten: Option<Arc<(PathBuf, [u8; KEY_BYTES])>>,
}

impl std::fmt::Debug for SealKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SealKey(..)")
    }
}

impl SealKey {
    /// Derives the keys from secret bytes.
    ///
    /// # Errors
    /// The cipher takes no key of this length: a defect.
    pub fn new(secret: &[u8; KEY_BYTES]) -> io::Result<Self> {
        let master = hmac::Key::new(hmac::HMAC_SHA256, secret);
        // Each use has its own derived key, so that neither reveals the other.
        let derived = |purpose: &[u8]| hmac::sign(&master, purpose);
        let cipher = UnboundKey::new(&CHACHA20_POLY1305, derived(b"periapt seal cipher").as_ref())
            .map_err(|_| io::Error::other("the cipher takes no such key"))?;
        Ok(Self {
            digest: hmac::Key::new(hmac::HMAC_SHA256, derived(b"periapt seal digest").as_ref()),
            requests: hmac::Key::new(hmac::HMAC_SHA256, derived(b"periapt request digest").as_ref()),
            cipher: Arc::new(LessSafeKey::new(cipher)),
            secret: *secret,
            unwritten: None,
        })
    }

    /// Returns the key in a file that only its owner may read, or a new one if the file does not exist. The controller
    /// writes a new one into the file when it starts.
    ///
    /// # Errors
    /// The file cannot be read, is no key, or others can reach it.
    pub fn in_file(path: &Path) -> io::Result<Self> {
        let mut key = [0; KEY_BYTES];
        match OpenOptions::new().read(true).open(path) {
            Ok(file) => {
                let mode = file.metadata()?.mode() & 0o777;
                if mode & 0o077 != 0 {
                    let text = format!(
                        "it has mode {mode:03o}, and others than its owner can reach it; `chmod 600` it"
                    );
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
                }
                let mut bytes = Vec::new();
                file.take(KEY_BYTES as u64 + 1).read_to_end(&mut bytes)?;
                key = bytes.try_into().map_err(|_| {
                    io::Error::new(io::ErrorKind::InvalidData, format!("a key has {KEY_BYTES} bytes"))
                })?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
                let unwritten = Some(Arc::new((path.to_owned(), key)));
                return Ok(Self { unwritten, ..Self::new(&key)? });
            }
            Err(error) => return Err(error),
        }
        Self::new(&key)
    }

    /// Returns the fingerprint of the keys that all controllers of a log share: this one, and that of the authority with
    /// this certificate.
    pub(crate) fn fingerprint(&self, authority: &str) -> Digest {
        let master = hmac::Key::new(hmac::HMAC_SHA256, &self.secret);
        let own = hmac::sign(&master, b"periapt fingerprint of keys");
        Digest::of(&[own.as_ref(), authority.as_bytes()].concat())
    }

    /// Returns the secret bytes in base64, for another controller of the same log.
    pub(crate) fn reveal(&self) -> String {
        STANDARD.encode(self.secret)
    }

    /// Returns the file of a new key; none if the key was in its file.
    pub(crate) fn new_file(&self) -> Option<&Path> {
        self.unwritten.as_ref().map(|unwritten| unwritten.0.as_path())
    }

    /// Writes a new key into its file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn keep(&self) -> io::Result<()> {
        self.unwritten.as_ref().map_or(Ok(()), |unwritten| write_key(&unwritten.0, &unwritten.1))
    }

    fn checksum(&self, bound: &[u8], bytes: &[u8]) -> [u8; 32] {
        keyed_digest(&self.digest, bound, bytes)
    }

    /// Returns the digest of a command as its client sent it. Without the key, no reader of the store can try out which
    /// password or secret the command holds.
    pub(crate) fn request_digest(&self, act: &str, content: &[u8]) -> Digest {
        Digest::from_bytes(keyed_digest(&self.requests, act.as_bytes(), content))
    }

    fn nonce(checksum: &[u8; 32]) -> Option<Nonce> {
        Nonce::try_assume_unique_for_key(checksum.get(..NONCE_LEN)?).ok()
    }
}

fn keyed_digest(key: &hmac::Key, bound: &[u8], bytes: &[u8]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(key);
    context.update(&(bound.len() as u64).to_be_bytes());
    context.update(bound);
    context.update(bytes);
    let mut digest = [0; 32];
    for (to, from) in digest.iter_mut().zip(context.sign().as_ref()) {
        *to = *from;
    }
    digest
}

/// Writes the file atomically: half a key would be taken for the key.
pub(crate) fn write_key(path: &Path, key: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(key)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    match path.parent() {
        Some(directory) => fs::File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// The nonce is the beginning of the keyed digest of the content and its context. So two different messages never
/// share a nonce, and equal messages give equal results, which a repeated commit needs.
impl Sealer for SealKey {
    fn seal(&self, what: SealedFor, bytes: &[u8]) -> Result<Sealed, Refusal> {
        let failed = || Refusal::new(ErrorCode::Internal, "content could not be sealed");
        let bound = what.to_bytes();
        let checksum = self.checksum(&bound, bytes);
        let nonce = Self::nonce(&checksum).ok_or_else(failed)?;
        let mut sealed = bytes.to_vec();
        self.cipher.seal_in_place_append_tag(nonce, Aad::from(&bound), &mut sealed).map_err(|_| failed())?;
        Ok(Sealed { checksum: hex::encode(checksum), bytes: STANDARD.encode(sealed) })
    }

    fn open(&self, what: SealedFor, sealed: &Sealed) -> Option<Vec<u8>> {
        let bound = what.to_bytes();
        let mut checksum = [0; 32];
        hex::decode_to_slice(&sealed.checksum, &mut checksum).ok()?;
        let mut bytes = STANDARD.decode(&sealed.bytes).ok()?;
        let opened =
            self.cipher.open_in_place(Self::nonce(&checksum)?, Aad::from(&bound), &mut bytes).ok()?;
        let opened = opened.to_vec();
        (self.checksum(&bound, &opened) == checksum).then_some(opened)
    }
}

/// The encryption of incoming data, and the decryption for readers with access.
#[derive(Clone)]
pub(crate) struct SecretSealer {
    pub(crate) key: SealKey,
    pub(crate) random: Arc<dyn RandomSource>,
}

impl SecretSealer {
    /// Encrypts the confidential data of a request.
    pub(crate) fn seal(&self, root: &Root, input: &mut Input) -> Result<(), Refusal> {
        seal_input(root, input, &self.key, self.random.seed())
    }

    /// Returns a journal record with its seed and confidential answers decrypted, for a reader with access.
    pub(crate) fn open_journal(
        &self,
        model: &ModelUuid,
        record: JournalRecord,
    ) -> Result<JournalRecord, Refusal> {
        open_journal(&self.key, model, record)
    }

    /// Decrypts content for a reader with access.
    pub(crate) fn open(&self, (sealed, what): (Sealed, SealedFor)) -> Result<SecretData, Refusal> {
        open_content(&self.key, what, &sealed).ok_or_else(|| {
            let text =
                "a secret cannot be opened: it was sealed under another key than the controller has now";
            Refusal::new(ErrorCode::Internal, text)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn what(number: u128) -> SealedFor {
        SealedFor::Journal(ModelUuid(uuid::Uuid::from_u128(number)))
    }

    #[test]
    fn a_seal_opens_for_its_own_thing_and_key_alone() {
        let (key, other) = (SealKey::new(&[1; 32]).unwrap(), SealKey::new(&[2; 32]).unwrap());
        let sealed = key.seal(what(1), b"hunter2").unwrap();
        assert_eq!(key.open(what(1), &sealed).unwrap(), b"hunter2");
        assert_eq!(key.seal(what(1), b"hunter2").unwrap(), sealed, "the same again is the same");
        assert_ne!(key.seal(what(2), b"hunter2").unwrap().checksum, sealed.checksum);
        assert_eq!(key.open(what(2), &sealed), None);
        assert_eq!(other.open(what(1), &sealed), None);
        let mut spoilt = sealed.clone();
        spoilt.bytes.replace_range(0..1, if sealed.bytes.starts_with('A') { "B" } else { "A" });
        assert_eq!(key.open(what(1), &spoilt), None);
        let mut moved = sealed;
        moved.checksum = key.seal(what(1), b"other").unwrap().checksum;
        assert_eq!(key.open(what(1), &moved), None);
    }

    #[test]
    fn a_key_is_made_once_and_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret-key");
        let key = SealKey::in_file(&path).unwrap();
        assert_eq!((key.new_file(), path.exists()), (Some(&*path), false), "not before it is kept");
        key.keep().unwrap();
        let sealed = key.seal(what(1), b"x").unwrap();
        assert_eq!(SealKey::in_file(&path).unwrap().new_file(), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(SealKey::in_file(&path).unwrap().open(what(1), &sealed).unwrap(), b"x");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = SealKey::in_file(&path).unwrap_err();
        assert!(error.to_string().starts_with("it has mode 640, and others than its owner"), "{error}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"short").unwrap();
        assert_eq!(SealKey::in_file(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
