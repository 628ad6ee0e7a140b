//! A backup that is read: entry by entry, in pieces, with the digest of all of it.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, BufReader, Read as _},
    path::{Path, PathBuf},
};

use periapt_host_api::{
    Digest,
    backup::{BaseBackup, BaseContents, BaseFile, WrappingKey},
};
use ring::digest::{Context, SHA256};

use super::{
    entry::{self, BLOCK, EntryName, PartName},
    error::BackupError,
    keys::{BackupKeys, MAX_KEYS},
    manifest::{BackupManifest, FORM, MAX_MANIFEST},
};

/// The bytes that are read at a time.
const PIECE: usize = 256 << 10;
/// The digits of a digest.
const DIGEST_DIGITS: u64 = 64;

/// A backup whose manifest was read.
#[derive(Debug)]
pub struct BackupFile {
    manifest: BackupManifest,
    /// The manifest's bytes, which the encryption of the keys is bound to.
    pub(super) manifest_bytes: Vec<u8>,
    pub(super) entries: Entries,
}

/// The result of reading a whole backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupSummary {
    /// The manifest.
    pub manifest: BackupManifest,
    /// The size of the file in bytes.
    pub bytes: u64,
    /// The digest of all entries.
    pub digest: Digest,
    /// The digests of the parts that the file has.
    pub(super) own: BTreeMap<PartName, Digest>,
    /// The digests of the parts that the backups have on which this one builds.
    pub(super) unchanged: BTreeMap<PartName, Digest>,
}

/// The entries of a file.
#[derive(Debug)]
pub(super) struct Entries {
    path: PathBuf,
    source: BufReader<File>,
    hasher: DebugContext,
    read: u64,
    /// The bytes of the current entry that were not read.
    left: u64,
    padding: usize,
}

/// The state of a digest.
struct DebugContext(Context);

impl std::fmt::Debug for DebugContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DebugContext(..)")
    }
}

impl BackupFile {
    /// Opens a backup, and reads its manifest.
    ///
    /// # Errors
    /// The file cannot be read, or is no backup.
    pub fn at(path: &Path) -> Result<Self, BackupError> {
        let failed = |source| BackupError::Unreadable { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        // It is read twice, which a pipe does not allow.
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(BackupError::Foreign(path.to_owned()));
        }
        let mut entries = Entries {
            path: path.to_owned(),
            source: BufReader::with_capacity(PIECE, file),
            hasher: DebugContext(Context::new(&SHA256)),
            read: 0,
            left: 0,
            padding: 0,
        };
        let foreign = || BackupError::Foreign(path.to_owned());
        // All that is wrong before the manifest's end means another file.
        let (name, _) = entries.next().map_err(|error| match error {
            BackupError::Damaged { .. } | BackupError::Truncated { .. } => foreign(),
            other => other,
        })?;
        if name != EntryName::Manifest {
            return Err(foreign());
        }
        let manifest_bytes = entries.whole(MAX_MANIFEST)?;
        #[derive(serde::Deserialize)]
        struct Form {
            form: u32,
        }
        let Form { form } = serde_json::from_slice(&manifest_bytes).map_err(|_| foreign())?;
        if form > FORM {
            return Err(BackupError::TooNew { path: path.to_owned(), form, known: FORM });
        }
        let manifest = BackupManifest::read(form, &manifest_bytes)
            .map_err(|error| entries.damaged(format!("its manifest cannot be read: {error}")))?;
        Ok(Self { manifest, manifest_bytes, entries })
    }

    /// Returns the manifest.
    pub fn manifest(&self) -> &BackupManifest {
        &self.manifest
    }

    /// Reads the rest of the file, and checks that it is whole, and that a key opens its keys. Writes nothing. The backups
    /// that it builds on are not read ([`BackupChain::verify`](super::BackupChain::verify)).
    ///
    /// # Errors
    /// The file is damaged or incomplete, or the key is another one.
    pub async fn verify(mut self, key: Option<&WrappingKey>) -> Result<BackupSummary, BackupError> {
        let (mut own, mut unchanged, mut opened) = (BTreeMap::new(), BTreeMap::new(), false);
        loop {
            match self.entries.next()?.0 {
                EntryName::Digest => {
                    let (bytes, digest) = self.entries.end()?;
                    if key.is_some() && !opened {
                        return Err(self.entries.without_keys());
                    }
                    return Ok(BackupSummary { manifest: self.manifest, bytes, digest, own, unchanged });
                }
                EntryName::Keys => {
                    let encrypted = self.entries.whole(MAX_KEYS)?;
                    if let Some(key) = key {
                        let keys = BackupKeys::decrypt(&encrypted, key, &self.manifest_bytes);
                        let wrong = || BackupError::WrongPassphrase(self.entries.path().to_owned());
                        opened = keys.ok_or_else(wrong).map(|_| true)?;
                    }
                }
                EntryName::Part(name) => {
                    let mut hasher = Context::new(&SHA256);
                    while let Some(piece) = self.entries.piece()? {
                        hasher.update(&piece);
                        tokio::task::yield_now().await;
                    }
                    let digest = self.entries.digest_of(hasher)?;
                    if own.insert(name.clone(), digest).is_some() || unchanged.contains_key(&name) {
                        return Err(self.entries.damaged(format!("it has {name} twice")));
                    }
                }
                EntryName::Unchanged(name) => {
                    let digest = self.unchanged(&name)?;
                    if unchanged.insert(name.clone(), digest).is_some() || own.contains_key(&name) {
                        return Err(self.entries.damaged(format!("it has {name} twice")));
                    }
                }
                EntryName::Manifest => return Err(self.entries.second_manifest()),
            }
        }
    }

    /// Reads the digest of a part that this backup leaves out.
    pub(super) fn unchanged(&mut self, name: &PartName) -> Result<Digest, BackupError> {
        if self.manifest.base.is_none() {
            return Err(self.entries.damaged(format!("it builds on no other backup, and leaves out {name}")));
        }
        let text = self.entries.whole(DIGEST_DIGITS)?;
        let digest = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        digest.ok_or_else(|| self.entries.damaged(format!("it has no digest of {name}")))
    }
}

impl BackupSummary {
    /// Returns the number of blobs that a restoration of this backup has.
    pub fn blobs(&self) -> usize {
        let parts = self.own.keys().chain(self.unchanged.keys());
        parts.filter(|name| !matches!(name, PartName::Store(_))).count()
    }

    /// Returns the number of parts that the file leaves out, because the backups that it builds on have them.
    pub fn unchanged(&self) -> usize {
        self.unchanged.len()
    }

    /// Returns what a backup that builds on this one may leave out. The name helps the person who restores.
    pub fn as_base(&self, filename: &str) -> BaseContents {
        let backup = BaseBackup {
            filename: filename.to_owned(),
            store: self.manifest.store,
            revision: self.manifest.revision,
            digest: self.digest,
            depth: self.manifest.depth(),
        };
        let mut contents =
            BaseContents { backup, files: vec![], charms: Default::default(), resources: Default::default() };
        for (name, digest) in self.own.iter().chain(&self.unchanged) {
            match name {
                PartName::Store(name) => {
                    contents.files.push(BaseFile { name: name.clone(), digest: *digest });
                }
                PartName::Charm(digest) => {
                    contents.charms.insert(*digest);
                }
                PartName::Resource(digest) => {
                    contents.resources.insert(*digest);
                }
            }
        }
        contents
    }
}

impl Entries {
    /// Reads the header of the next entry. The current entry must have been read.
    pub(super) fn next(&mut self) -> Result<(EntryName, u64), BackupError> {
        let mut padding = [0; BLOCK];
        let rest = padding.get_mut(..self.padding).unwrap_or_default();
        read_exact(&mut self.source, rest, &self.path, &mut self.read)?;
        if rest.iter().any(|byte| *byte != 0) {
            return Err(self.damaged("there is data between its entries"));
        }
        self.hasher.0.update(rest);
        let mut block = [0; BLOCK];
        read_exact(&mut self.source, &mut block, &self.path, &mut self.read)?;
        let Some((name, size)) = entry::parse(&block) else {
            return Err(self.damaged(format!("there is no valid entry before byte {}", self.read)));
        };
        (self.left, self.padding) = (size, entry::padding(size));
        if name != EntryName::Digest {
            self.hasher.0.update(&block);
        }
        Ok((name, size))
    }

    /// Reads the next piece of the current entry; none at its end.
    pub(super) fn piece(&mut self) -> Result<Option<Vec<u8>>, BackupError> {
        let size = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
        if size == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; size];
        read_exact(&mut self.source, &mut piece, &self.path, &mut self.read)?;
        self.hasher.0.update(&piece);
        self.left -= size as u64;
        Ok(Some(piece))
    }

    /// Reads the whole current entry, which must be small.
    pub(super) fn whole(&mut self, limit: u64) -> Result<Vec<u8>, BackupError> {
        if self.left > limit {
            return Err(
                self.damaged(format!("an entry has {} bytes, at most {limit} are allowed", self.left))
            );
        }
        let mut content = Vec::new();
        while let Some(piece) = self.piece()? {
            content.extend(piece);
        }
        Ok(content)
    }

    /// Reads the digest, whose header was read, and the end of the file. Returns the size of the file and the digest.
    pub(super) fn end(&mut self) -> Result<(u64, Digest), BackupError> {
        let own = self.digest_of(self.hasher.0.clone())?;
        if self.whole(DIGEST_DIGITS)? != own.to_string().as_bytes() {
            return Err(self.damaged("its content does not have the digest at its end"));
        }
        let mut rest = vec![0; self.padding + 2 * BLOCK];
        read_exact(&mut self.source, &mut rest, &self.path, &mut self.read)?;
        let after = self.source.read(&mut [0]).map_err(|source| self.unreadable(source))?;
        match after == 0 && rest.iter().all(|byte| *byte == 0) {
            true => Ok((self.read, own)),
            false => Err(self.damaged("there is data after its end")),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> BackupError {
        BackupError::Damaged { path: self.path.clone(), what: what.into() }
    }

    /// Returns the digest of what was hashed.
    pub(super) fn digest_of(&self, hasher: Context) -> Result<Digest, BackupError> {
        let bytes: Result<[u8; 32], _> = hasher.finish().as_ref().try_into();
        bytes.map(Digest::from_bytes).map_err(|_| self.damaged("it has no digest"))
    }

    pub(super) fn second_manifest(&self) -> BackupError {
        self.damaged("it has a second manifest")
    }

    pub(super) fn without_keys(&self) -> BackupError {
        self.damaged("it has no keys")
    }

    fn unreadable(&self, source: io::Error) -> BackupError {
        BackupError::Unreadable { path: self.path.clone(), source }
    }
}

fn read_exact(
    source: &mut BufReader<File>,
    into: &mut [u8],
    path: &Path,
    read: &mut u64,
) -> Result<(), BackupError> {
    source.read_exact(into).map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof => BackupError::Truncated { path: path.to_owned(), bytes: *read },
        _ => BackupError::Unreadable { path: path.to_owned(), source },
    })?;
    *read += into.len() as u64;
    Ok(())
}
