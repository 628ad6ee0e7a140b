//! A new controller of the directory of one that has ended: for a set whose log is lost.

use std::path::{Path, PathBuf};

use futures_util::TryStreamExt as _;
use periapt_blobs::{Blobs, SharedStore};
use periapt_host_api::{Digest, Revision, StoreId, Timestamp};
use periapt_model::Entity;
use periapt_store::{Store as _, StoreError, StoredState, codec};
use periapt_store_rocksdb::RocksStore;

use super::{
    adopt::{RestoredController, RestoredLog, adopt},
    error::BackupError,
    keys::BackupKeys,
    restore::make_new,
};
use crate::state::BlobKind;

/// The directory of a controller that has ended. Its store is open, so the controller cannot be started meanwhile.
#[derive(Debug)]
pub struct StoppedController {
    directory: PathBuf,
    store: RocksStore,
    keys: BackupKeys,
    revision: Revision,
    /// The time of the controller's first start.
    created_at: Timestamp,
    registered: Vec<(BlobKind, Digest)>,
}

impl StoppedController {
    /// Opens the directory of a controller that has ended, and reads its keys and its store.
    ///
    /// # Errors
    /// [`BackupError::NoController`], [`BackupError::Running`], [`BackupError::Keys`], [`BackupError::Store`]
    pub async fn at(directory: &Path) -> Result<Self, BackupError> {
        let place = directory.join("store");
        if !place.join("CURRENT").exists() {
            return Err(BackupError::NoController(directory.to_owned()));
        }
        let keys = BackupKeys::in_directory(directory)?;
        let store =
            RocksStore::open(&place, StoreId(uuid::Uuid::nil())).await.map_err(|error| match error {
                StoreError::InUse(_) => BackupError::Running(directory.to_owned()),
                error => error.into(),
            })?;
        let StoredState { revision, note: _, mut chunks } = store.load().await?;
        let (mut created_at, mut registered) = (Timestamp::UNIX_EPOCH, Vec::new());
        while let Some(chunk) = chunks.try_next().await? {
            let kept = codec::entities(chunk).map_err(|error| StoreError::Damaged(error.to_string()))?;
            for (_, entity) in kept {
                match entity {
                    Entity::Controller(controller) => created_at = controller.created_at,
                    Entity::Charm(charm) => registered.push((BlobKind::Charm, charm.digest)),
                    // The parts of a content are contents themselves.
                    Entity::ResourceContent(content) if content.parts.is_none() => {
                        registered.push((BlobKind::Resource, content.digest));
                    }
                    _ => {}
                }
            }
        }
        Ok(Self { directory: directory.to_owned(), store, keys, revision, created_at, registered })
    }

    /// Returns the last revision that the controller had.
    pub fn revision(&self) -> Revision {
        self.revision
    }

    /// Checks the bytes of each blob that the store names.
    ///
    /// # Errors
    /// [`BackupError::NoBlob`] names the first that is missing or damaged.
    pub async fn check_blobs(&self) -> Result<(), BackupError> {
        let local = Blobs::local(&self.directory.join("blobs"))?;
        for (kind, digest) in &self.registered {
            let blobs = kind.among(&local);
            if blobs.size(digest).await?.is_none() || !blobs.is_intact(digest).await? {
                return Err(BackupError::NoBlob { directory: self.directory.clone(), digest: *digest });
            }
        }
        Ok(())
    }
}

/// Makes a controller in a new directory of one that has ended, with its keys and blobs, under a new identity and with
/// raised numbers. With an object store for blobs, the blobs are brought there when the controller starts. After an error
/// the caller removes the new directory; the old one stays as it was.
///
/// # Errors
/// [`BackupError`]
pub async fn recover(
    from: StoppedController,
    into: &Path,
    shared: Option<&SharedStore>,
    log: RestoredLog,
) -> Result<RestoredController, BackupError> {
    if let Some(shared) = shared {
        shared.is_free().await?;
    }
    make_new(into)?;
    let place = into.join("store");
    from.store.checkpoint(&place).await?;
    let (old, new) = (Blobs::local(&from.directory.join("blobs"))?, Blobs::local(&into.join("blobs"))?);
    for (kind, digest) in &from.registered {
        copy(&kind.among(&old), &kind.among(&new), *digest).await?;
    }
    from.keys.write(into)?;
    // The age of the copy is unknown: the time since the first start rises with each recovery of the same directory.
    adopt(&place, from.created_at, log, |_| Ok(())).await
}

/// Copies a blob, if it is there.
async fn copy(from: &Blobs, to: &Blobs, digest: Digest) -> Result<(), BackupError> {
    let Some(mut blob) = from.get(&digest, None).await? else { return Ok(()) };
    let mut incoming = to.begin(digest).await?;
    while let Some(piece) = blob.content.try_next().await? {
        incoming.write(piece).await?;
    }
    incoming.finish().await?;
    Ok(())
}
