//! Blobs addressed by their SHA-256: charm archives and the content of resources. A blob never changes, so it can be
//! cached for ever. Blobs are in a local directory by default, or in an object store that several controllers share.

mod cache;
mod error;
mod incoming;
mod intact;
mod pieces;
mod s3;
mod shared;
mod spool;
#[cfg(feature = "testing")]
pub mod testing;

use std::{collections::BTreeSet, ops::Range, path::Path, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use object_store::{
    GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, local::LocalFileSystem, path::Path as Key,
};
use periapt_host_api::Digest;
use tokio::sync::Semaphore;

pub use crate::{
    error::BlobError,
    incoming::Incoming,
    s3::{CredentialsFrom, S3Credentials, S3Endpoint, S3Error, S3Failure, S3Options, S3Timeouts, S3Url},
    shared::{SharedStore, StoredObject},
    spool::{Spool, Spooled},
};
use crate::{error::Failures, shared::Shared};

/// A store of blobs. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Blobs {
    store: Arc<dyn ObjectStore>,
    /// The key prefix of this namespace; none for the first one, of charm archives.
    namespace: Option<&'static str>,
    /// The directory of a local store, or of the cache of a shared one.
    directory: Option<Arc<Path>>,
    /// The part that is there if several controllers share the store.
    shared: Option<Shared>,
    /// Limits the concurrent checks of stored blobs' digests.
    verifying: Arc<Semaphore>,
}

/// A blob that is being read.
pub struct Blob {
    /// The size of the whole blob, in bytes.
    pub size: u64,
    /// The range that is read.
    pub range: Range<u64>,
    /// The range's content, piece by piece.
    pub content: BoxStream<'static, Result<Bytes, BlobError>>,
}

/// The number and the size of blobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlobUsage {
    /// The number of blobs.
    pub count: u64,
    /// The bytes of all of them.
    pub bytes: u64,
}

impl Blobs {
    /// Opens the blobs of a local directory, or creates it. Blobs are durable once they are stored.
    ///
    /// # Errors
    /// [`BlobError::Directory`]
    pub fn local(directory: &Path) -> Result<Self, BlobError> {
        let failed = |source| BlobError::Directory { directory: directory.display().to_string(), source };
        std::fs::create_dir_all(directory).map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(directory)
            .map_err(|error| failed(error.into()))?
            .with_fsync(true);
        Ok(Self { directory: Some(directory.into()), ..Self::new(Arc::new(store)) })
    }

    /// Opens the blobs of any object store.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self { store, namespace: None, directory: None, shared: None, verifying: intact::permits() }
    }

    /// Opens the blobs of an object store that several controllers share. Blobs that are read are kept in a directory
    /// of this controller's, up to a bound.
    ///
    /// # Errors
    /// [`BlobError::Directory`]
    pub fn in_shared(store: &SharedStore, cache: &Path) -> Result<Self, BlobError> {
        let shared = store.cached_in(cache)?;
        let (directory, shared) = (Some(cache.into()), Some(shared));
        Ok(Self { directory, shared, ..Self::new(store.objects()) })
    }

    /// Returns a separate namespace of the same store. Equal blobs of two namespaces are distinct, so that each can
    /// be served and deleted by its own rules.
    pub fn namespace(&self, name: &'static str) -> Self {
        Self { namespace: Some(name), ..self.clone() }
    }

    /// Returns the size of a blob in bytes; none if it does not exist.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn size(&self, digest: &Digest) -> Result<Option<u64>, BlobError> {
        if let Some(shared) = &self.shared {
            return Ok(shared.newest(self.folder(), digest).await?.map(|object| object.size));
        }
        match self.store.head(&self.key(digest)).await {
            Ok(meta) => Ok(Some(meta.size)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(BlobError::Store(error)),
        }
    }

    /// Returns the size in bytes of a blob that is about to be read; none if it does not exist. One of a shared store
    /// is fetched and checked.
    ///
    /// # Errors
    /// [`BlobError::Store`], [`BlobError::Shared`], [`BlobError::Damaged`]
    pub async fn readable_size(&self, digest: &Digest) -> Result<Option<u64>, BlobError> {
        match &self.shared {
            Some(shared) => Ok(shared.checked(self.folder(), digest).await?.map(|(_, size)| size)),
            None => self.size(digest).await,
        }
    }

    /// Reads a blob, or a range of it (clipped to the blob's end); none if the blob does not exist. No byte of a blob of
    /// a shared store is returned before the whole blob was fetched and has its digest.
    ///
    /// # Errors
    /// [`BlobError::NoSuchRange`], [`BlobError::Store`], [`BlobError::Shared`], [`BlobError::Damaged`]
    pub async fn get(&self, digest: &Digest, range: Option<Range<u64>>) -> Result<Option<Blob>, BlobError> {
        if let Some(shared) = &self.shared {
            let Some((file, size)) = shared.checked(self.folder(), digest).await? else { return Ok(None) };
            let range = clipped(range, size)?;
            let content = pieces::of(file, range.clone());
            return Ok(Some(Blob { size, range, content }));
        }
        let Some(size) = self.size(digest).await? else { return Ok(None) };
        let range = clipped(range, size)?;
        let part = (range != (0..size)).then(|| GetRange::Bounded(range.clone()));
        let options = GetOptions { range: part, ..GetOptions::default() };
        match self.store.get_opts(&self.key(digest), options).await {
            Ok(found) => {
                let content = found.into_stream().map(|piece| piece.map_err(BlobError::Store)).boxed();
                Ok(Some(Blob { size, range, content }))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(BlobError::Store(error)),
        }
    }

    /// Deletes the files that a crash left unfinished in a local directory. Only the single writing process may call
    /// it, before its first upload.
    ///
    /// # Errors
    /// [`BlobError::Directory`]
    pub async fn sweep(&self) -> Result<(), BlobError> {
        let Some(directory) = self.directory.clone() else { return Ok(()) };
        let shown = directory.display().to_string();
        let swept = tokio::task::spawn_blocking(move || sweep(&directory)).await;
        let swept = swept.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        swept.map_err(|source| BlobError::Directory { directory: shown, source })
    }

    /// Returns the number and the size of the blobs in this namespace.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn usage(&self) -> Result<BlobUsage, BlobError> {
        if let Some(shared) = &self.shared {
            return shared.usage(self.folder()).await;
        }
        let mut usage = BlobUsage::default();
        self.each(|_, size| {
            usage.count += 1;
            usage.bytes += size;
        })
        .await?;
        Ok(usage)
    }

    /// Returns the digests of the blobs in this namespace.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn digests(&self) -> Result<BTreeSet<Digest>, BlobError> {
        if self.shared.is_some() {
            return Ok(self.objects().await?.into_iter().map(|object| object.digest).collect());
        }
        let mut digests = BTreeSet::new();
        // Periapt names no file otherwise; another name is left alone.
        self.each(|name, _| digests.extend(name.parse::<Digest>().ok())).await?;
        Ok(digests)
    }

    /// Calls a function for each blob in this namespace, with its name and its size in bytes.
    async fn each(&self, mut found: impl FnMut(&str, u64)) -> Result<(), BlobError> {
        let prefix = self.namespace.map(Key::from);
        let mut blobs = self.store.list(prefix.as_ref());
        // The first namespace has no prefix: keys of the others have one part more.
        let parts = if self.namespace.is_some() { 3 } else { 2 };
        while let Some(blob) = blobs.next().await.transpose().map_err(BlobError::Store)? {
            if blob.location.parts_count() == parts {
                found(blob.location.filename().unwrap_or_default(), blob.size);
            }
        }
        Ok(())
    }

    /// Deletes a blob; a missing blob is no error.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn delete(&self, digest: &Digest) -> Result<(), BlobError> {
        if let Some(shared) = &self.shared {
            for object in shared.of(self.folder(), digest).await? {
                shared.delete(&object).await?;
            }
            return Ok(());
        }
        match self.store.delete(&self.key(digest)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(BlobError::Store(error)),
        }
    }

    /// Returns the maker of errors.
    fn failures(&self) -> Failures {
        Failures(self.shared.as_ref().map(Shared::place))
    }

    /// Returns the namespace's name in a shared store.
    fn folder(&self) -> &'static str {
        self.namespace.unwrap_or("charms")
    }

    /// Returns the blob's key, `ab/abcdef...` in its namespace, so that no directory grows too long.
    fn key(&self, digest: &Digest) -> Key {
        let name = digest.to_string();
        let prefix: String = name.chars().take(2).collect();
        Key::from(match self.namespace {
            None => format!("{prefix}/{name}"),
            Some(namespace) => format!("{namespace}/{prefix}/{name}"),
        })
    }
}

/// Returns a range of a blob of this size, clipped to the blob's end.
fn clipped(range: Option<Range<u64>>, size: u64) -> Result<Range<u64>, BlobError> {
    match range {
        None => Ok(0..size),
        Some(range) if range.start < range.end && range.start < size => Ok(range.start..range.end.min(size)),
        Some(range) => Err(BlobError::NoSuchRange { range, size }),
    }
}

/// The separator in the names of unfinished files: `object_store` writes beside the final path, under the blob's
/// name, this and a number, and renames complete files.
const UNFINISHED: char = '#';

fn sweep(directory: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sweep(&entry.path())?;
        } else if entry.file_name().to_str().is_some_and(|name| name.contains(UNFINISHED)) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(blob: Blob) -> Vec<u8> {
        let pieces: Vec<_> = blob.content.map(|piece| piece.unwrap()).collect().await;
        pieces.concat()
    }

    #[tokio::test]
    async fn what_was_put_is_read_back_whole_and_in_ranges() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let digest = Digest::of(b"0123456789");
        assert!(blobs.get(&digest, None).await.unwrap().is_none());

        for _ in 0..2 {
            let mut spool = blobs.spool().await.unwrap();
            spool.write(&Bytes::from_static(b"0123456789")).await.unwrap();
            blobs.put_spooled(spool.end().await.unwrap()).await.unwrap();
        }
        let blobs = Blobs::local(directory.path()).unwrap();
        assert_eq!(read(blobs.get(&digest, None).await.unwrap().unwrap()).await, b"0123456789");
        let part = blobs.get(&digest, Some(7..99)).await.unwrap().unwrap();
        assert_eq!((part.size, part.range.clone()), (10, 7..10));
        assert_eq!(read(part).await, b"789");
        assert!(matches!(blobs.get(&digest, Some(10..11)).await, Err(BlobError::NoSuchRange { .. })));

        blobs.delete(&digest).await.unwrap();
        blobs.delete(&digest).await.unwrap();
        assert_eq!(blobs.size(&digest).await.unwrap(), None);
    }
}
