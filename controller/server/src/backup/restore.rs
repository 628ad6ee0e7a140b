//! The restoration of a controller's directory from a backup.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_blobs::{Blobs, SharedStore};
use periapt_host_api::{Digest, backup::WrappingKey};
use periapt_model::Entity;
use ring::digest::{Context, SHA256};

use super::{
    adopt::{RestoredController, RestoredLog, adopt},
    chain::BackupChain,
    entry::{EntryName, PartName},
    error::{BackupError, unwritable},
    keys::{BackupKeys, MAX_KEYS},
    read::{BackupFile, Entries},
};
use crate::options::blob_cache;

/// The origin of a restored controller's keys.
#[derive(Debug, Clone)]
pub enum RestoredKeys {
    /// The backup has them, encrypted by this key.
    Encrypted(WrappingKey),
    /// The operator gives them.
    Given(BackupKeys),
}

/// The parts that a restoration writes.
struct Parts {
    /// The directory of the store.
    store: PathBuf,
    charms: Blobs,
    resources: Blobs,
    /// The parts that were written.
    written: BTreeSet<PartName>,
    /// The parts that the newest backup leaves out and no older one had yet, with their digests.
    needed: BTreeMap<PartName, Digest>,
}

/// Restores a controller into a new directory: its store under a new identity, with raised incarnations and terms, its
/// blobs and its keys. The blobs go into the object store that is given, which must hold none of another controller; none:
/// into the directory. A set of controllers begins with one whose store is fed from a new log. After an error the caller
/// removes the directory.
///
/// # Errors
/// [`BackupError`]
pub async fn restore(
    backup: BackupChain,
    into: &Path,
    keys: &RestoredKeys,
    shared: Option<&SharedStore>,
    log: RestoredLog,
) -> Result<RestoredController, BackupError> {
    if let Some(shared) = shared {
        shared.is_free().await?;
    }
    make_new(into)?;
    let store = into.join("store");
    fs::DirBuilder::new().mode(0o700).create(&store).map_err(unwritable(&store))?;
    let charms = match shared {
        Some(shared) => Blobs::in_shared(shared, &blob_cache(into))?,
        None => Blobs::local(&into.join("blobs"))?,
    };
    let resources = charms.namespace("resources");
    let mut parts = Parts { store, charms, resources, written: BTreeSet::new(), needed: BTreeMap::new() };
    let BackupChain { mut newest, bases } = backup;
    let found = parts.of_newest(&mut newest, keys).await?;
    for mut base in bases {
        parts.of_base(&mut base).await?;
    }
    if let Some(name) = parts.needed.keys().next() {
        return Err(newest.entries.damaged(format!("none of the backups that it builds on has {name}")));
    }
    let found = match keys {
        RestoredKeys::Encrypted(_) => found.ok_or_else(|| newest.entries.without_keys())?,
        RestoredKeys::Given(given) => given.clone(),
    };
    found.write(into)?;
    let lacks = |entity: &Entity| {
        let (name, digest) = match entity {
            Entity::Charm(charm) => (PartName::Charm(charm.digest), charm.digest),
            // The parts of a content are contents themselves.
            Entity::ResourceContent(content) if content.parts.is_none() => {
                (PartName::Resource(content.digest), content.digest)
            }
            _ => return Ok(()),
        };
        match parts.written.contains(&name) {
            true => Ok(()),
            false => Err(newest.entries.damaged(format!("it lacks the blob {digest}"))),
        }
    };
    adopt(&parts.store, newest.manifest().created, log, lacks).await
}

/// Makes the directory of a restored controller.
pub(super) fn make_new(into: &Path) -> Result<(), BackupError> {
    match fs::DirBuilder::new().mode(0o700).create(into) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            Err(BackupError::Exists(into.to_owned()))
        }
        made => made.map_err(unwritable(into)),
    }
}

impl Parts {
    /// Writes the parts of the newest backup, and notes those that it leaves out. Returns its keys.
    async fn of_newest(
        &mut self,
        backup: &mut BackupFile,
        from: &RestoredKeys,
    ) -> Result<Option<BackupKeys>, BackupError> {
        let mut keys = None;
        loop {
            match backup.entries.next()?.0 {
                EntryName::Keys => {
                    let encrypted = backup.entries.whole(MAX_KEYS)?;
                    if let RestoredKeys::Encrypted(key) = from {
                        let opened = BackupKeys::decrypt(&encrypted, key, &backup.manifest_bytes);
                        let wrong = || BackupError::WrongPassphrase(backup.entries.path().to_owned());
                        keys = Some(opened.ok_or_else(wrong)?);
                    }
                }
                EntryName::Part(name) => {
                    self.write(&mut backup.entries, name, None).await?;
                }
                EntryName::Unchanged(name) => {
                    let digest = backup.unchanged(&name)?;
                    self.needed.insert(name, digest);
                }
                EntryName::Digest => return backup.entries.end().map(|_| keys),
                EntryName::Manifest => return Err(backup.entries.second_manifest()),
            }
        }
    }

    /// Writes the parts of a backup that a newer one leaves out.
    async fn of_base(&mut self, backup: &mut BackupFile) -> Result<(), BackupError> {
        loop {
            match backup.entries.next()?.0 {
                EntryName::Part(name) => match self.needed.remove(&name) {
                    Some(digest) => self.write(&mut backup.entries, name, Some(digest)).await?,
                    None => skip(&mut backup.entries).await?,
                },
                EntryName::Keys | EntryName::Unchanged(_) => skip(&mut backup.entries).await?,
                EntryName::Digest => return backup.entries.end().map(|_| ()),
                EntryName::Manifest => return Err(backup.entries.second_manifest()),
            }
        }
    }

    /// Writes a part, and checks the digest that a newer backup noted.
    async fn write(
        &mut self,
        entries: &mut Entries,
        name: PartName,
        noted: Option<Digest>,
    ) -> Result<(), BackupError> {
        let digest = match &name {
            PartName::Store(file) => write_file(entries, &self.store.join(file)).await?,
            PartName::Charm(digest) => write_blob(entries, &self.charms, *digest).await?,
            PartName::Resource(digest) => write_blob(entries, &self.resources, *digest).await?,
        };
        if noted.is_some_and(|noted| noted != digest) {
            return Err(entries.damaged(format!("its {name} is not the one that a newer backup builds on")));
        }
        self.written.insert(name);
        Ok(())
    }
}

async fn skip(entries: &mut Entries) -> Result<(), BackupError> {
    while entries.piece()?.is_some() {
        tokio::task::yield_now().await;
    }
    Ok(())
}

async fn write_file(entries: &mut Entries, path: &Path) -> Result<Digest, BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let (mut file, mut hasher) = (made.map_err(unwritable(path))?, Context::new(&SHA256));
    while let Some(piece) = entries.piece()? {
        hasher.update(&piece);
        file.write_all(&piece).map_err(unwritable(path))?;
        // An interrupted restoration ends here.
        tokio::task::yield_now().await;
    }
    file.sync_all().map_err(unwritable(path))?;
    entries.digest_of(hasher)
}

async fn write_blob(entries: &mut Entries, blobs: &Blobs, digest: Digest) -> Result<Digest, BackupError> {
    let mut spool = blobs.spool().await?;
    while let Some(piece) = entries.piece()? {
        spool.write(&piece.into()).await?;
    }
    let spooled = spool.end().await?;
    if spooled.digest() != digest {
        return Err(entries.damaged(format!("a blob does not have its digest {digest}")));
    }
    blobs.put_spooled(spooled).await?;
    Ok(digest)
}
