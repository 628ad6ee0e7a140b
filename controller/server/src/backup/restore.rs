//! The restoration of a controller's directory from a backup.

use std::{
    collections::BTreeSet,
    fs::{self, File, OpenOptions},
    io::Write as _,
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _},
    path::{Path, PathBuf},
};

use periapt_blobs::{Blobs, SharedStore};
use periapt_host_api::{Digest, Level, Revision, StoreId, Timestamp, backup::WrappingKey};
use periapt_log::LogHead;
use periapt_model::Entity;
use periapt_store::{Batch, Store as _, StoreError, codec};
use periapt_store_rocksdb::RocksStore;

use super::{
    entry::EntryName,
    error::BackupError,
    keys::{BackupKeys, MAX_KEYS},
    raise::{amount, raised},
    read::{BackupFile, Entries},
};
use crate::{
    clock::{RandomSource as _, SystemRandomSource},
    options::blob_cache,
};

/// A restored directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestoredController {
    /// The new identity of the store.
    pub store: StoreId,
    /// The revision of the store.
    pub revision: Revision,
}

/// The log of a restored controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredLog {
    /// None: the controller is alone, with a store of its own.
    None,
    /// A new one with the identity of the restored store, which begins after its revision. The caller makes it.
    New,
}

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
    match fs::DirBuilder::new().mode(0o700).create(into) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            return Err(BackupError::Exists(into.to_owned()));
        }
        made => made.map_err(unwritable(into))?,
    }
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
    adopt(&store, &written, &backup, log).await
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

/// Gives the store a new identity, raises its numbers, and checks that all its blobs are there.
async fn adopt(
    directory: &Path,
    written: &Written,
    backup: &BackupFile,
    log: RestoredLog,
) -> Result<RestoredController, BackupError> {
    let synced = File::open(directory).and_then(|directory| directory.sync_all());
    synced.map_err(unwritable(directory))?;
    let id = StoreId(uuid::Builder::from_random_bytes(SystemRandomSource.seed()).into_uuid());
    let store = RocksStore::adopt(directory, id).await?;
    let loaded = store.load().await?;
    let head = loaded.revision;
    let damaged = |error: codec::CodecError| StoreError::Damaged(error.to_string());
    let kept = codec::entities(loaded).map_err(damaged)?;
    let mut level = Level::FIRST;
    for (_, entity) in &kept {
        let missing = match entity {
            Entity::Controller(controller) => {
                level = controller.level;
                continue;
            }
            Entity::Charm(charm) if !written.charms.contains(&charm.digest) => charm.digest,
            Entity::ResourceContent(content) if !written.resources.contains(&content.digest) => {
                content.digest
            }
            _ => continue,
        };
        return Err(backup.entries.damaged(format!("it lacks the blob {missing}")));
    }
    let now = Timestamp::now();
    let writes =
        codec::Writes::of(&raised(&kept, amount(backup.manifest().created, now))).map_err(damaged)?;
    let note = match log {
        RestoredLog::None => None,
        RestoredLog::New => {
            Some(LogHead::restored(id, Revision(head.0.saturating_add(1)), now, level).encode())
        }
    };
    let revision = store.commit(Batch { note, ..codec::batch(head, [writes]) }).await?;
    Ok(RestoredController { store: id, revision })
}

fn unwritable(path: &Path) -> impl FnOnce(std::io::Error) -> BackupError {
    let path: PathBuf = path.to_owned();
    move |source| BackupError::Unwritable { path, source }
}
