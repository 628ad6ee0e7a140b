//! The restoration of a controller's directory from a backup.

use std::{
    collections::BTreeSet,
    fs::{self, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::Path,
};

use periapt_blobs::{Blobs, SharedStore};
use periapt_host_api::{Digest, backup::WrappingKey};
use periapt_model::Entity;

use super::{
    adopt::{RestoredController, RestoredLog, adopt},
    entry::EntryName,
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

/// The blobs that were written.
#[derive(Default)]
struct Written {
    charms: BTreeSet<Digest>,
    resources: BTreeSet<Digest>,
}

/// Restores a controller into a new directory: its store under a new identity, with raised incarnations and terms, its
/// blobs and its keys. The blobs go into the object store that is given, which must hold none of another controller; none:
/// into the directory. A set of controllers begins with one whose store is fed from a new log. After an error the caller
/// removes the directory.
///
/// # Errors
/// [`BackupError`]
pub async fn restore(
    mut backup: BackupFile,
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
    let blobs = match shared {
        Some(shared) => Blobs::in_shared(shared, &blob_cache(into))?,
        None => Blobs::local(&into.join("blobs"))?,
    };
    let (found, written) = unpack(&mut backup, blobs, &store, keys).await?;
    let found = match keys {
        RestoredKeys::Encrypted(_) => found.ok_or_else(|| backup.entries.without_keys())?,
        RestoredKeys::Given(given) => given.clone(),
    };
    found.write(into)?;
    let lacks = |entity: &Entity| {
        let missing = match entity {
            Entity::Charm(charm) if !written.charms.contains(&charm.digest) => charm.digest,
            Entity::ResourceContent(content) if !written.resources.contains(&content.digest) => {
                content.digest
            }
            _ => return Ok(()),
        };
        Err(backup.entries.damaged(format!("it lacks the blob {missing}")))
    };
    adopt(&store, backup.manifest().created, log, lacks).await
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

/// Writes the store's files and the blobs, and checks the digest of all.
async fn unpack(
    backup: &mut BackupFile,
    charms: Blobs,
    store: &Path,
    from: &RestoredKeys,
) -> Result<(Option<BackupKeys>, Written), BackupError> {
    let resources = charms.namespace("resources");
    let (mut keys, mut written) = (None, Written::default());
    let entries = &mut backup.entries;
    loop {
        match entries.next()?.0 {
            EntryName::Keys => {
                let encrypted = entries.whole(MAX_KEYS)?;
                if let RestoredKeys::Encrypted(key) = from {
                    let opened = BackupKeys::decrypt(&encrypted, key, &backup.manifest_bytes);
                    let wrong = || BackupError::WrongPassphrase(entries.path().to_owned());
                    keys = Some(opened.ok_or_else(wrong)?);
                }
            }
            EntryName::Store(name) => write_file(entries, &store.join(name)).await?,
            EntryName::Charm(digest) => {
                write_blob(entries, &charms, digest).await?;
                written.charms.insert(digest);
            }
            EntryName::Resource(digest) => {
                write_blob(entries, &resources, digest).await?;
                written.resources.insert(digest);
            }
            EntryName::Digest => {
                entries.end()?;
                return Ok((keys, written));
            }
            EntryName::Manifest => return Err(entries.damaged("it has a second manifest")),
        }
    }
}

async fn write_file(entries: &mut Entries, path: &Path) -> Result<(), BackupError> {
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let mut file = made.map_err(unwritable(path))?;
    while let Some(piece) = entries.piece()? {
        file.write_all(&piece).map_err(unwritable(path))?;
        // An interrupted restoration ends here.
        tokio::task::yield_now().await;
    }
    file.sync_all().map_err(unwritable(path))
}

async fn write_blob(entries: &mut Entries, blobs: &Blobs, digest: Digest) -> Result<(), BackupError> {
    let mut spool = blobs.spool().await?;
    while let Some(piece) = entries.piece()? {
        spool.write(&piece.into()).await?;
    }
    let spooled = spool.end().await?;
    if spooled.digest() != digest {
        return Err(entries.damaged(format!("a blob does not have its digest {digest}")));
    }
    Ok(blobs.put_spooled(spooled).await?)
}
