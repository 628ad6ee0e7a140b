//! Blobs in an object store that all controllers of a set reach.
//!
//! Each upload makes an object of a new name: `PREFIX/charms/ab/DIGEST/NUMBER`. A name is never written twice, and the
//! bytes under a digest are the same, whichever object has them. So the deletion of an object that was decided on long ago, by
//! a controller that was paused meanwhile, never meets a blob that was stored since.

mod claim;

use std::{
    collections::BTreeMap,
    path::Path,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::{ObjectStore, ObjectStoreExt as _, path::Path as Key};
use parking_lot::Mutex;
use periapt_host_api::{Digest, api::MAX_ARCHIVE_BYTES, resource::MAX_RESOURCE_BYTES};
use sha2::{Digest as _, Sha256};
use tokio::{fs::File, io::AsyncWriteExt as _, sync::Semaphore, time::Instant};

use crate::{BlobError, BlobUsage, Blobs, S3Error, S3Options, cache::Cache, error::Failures};

/// The age of an object after which it may be deleted if no model uses it. It is far longer than an upload takes, up to
/// its registration.
pub(crate) const GRACE: Duration = Duration::from_secs(24 * 3_600);

/// The age up to which an object is taken for a new upload of the same bytes. The rest of the grace is for the upload's
/// registration, and for clocks that differ.
const YOUNG: Duration = Duration::from_secs(12 * 3_600);

/// The most bytes of the cache, unless one blob alone is larger.
const CACHED: u64 = 4 << 30;

/// The size of the largest blob, in bytes. A larger object is none of ours, and must not fill the disk.
const LARGEST: u64 =
    if MAX_ARCHIVE_BYTES > MAX_RESOURCE_BYTES { MAX_ARCHIVE_BYTES } else { MAX_RESOURCE_BYTES };

/// The most blobs that are fetched at a time.
const FETCHED_AT_ONCE: usize = 4;

/// The time for which the size of all blobs is not measured again: the store lists them for it.
const MEASURED_EVERY: Duration = Duration::from_secs(600);

/// An object store that answers. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct SharedStore {
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    place: Arc<str>,
    cached: u64,
}

/// An object with a blob's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The digest that its name says.
    pub digest: Digest,
    /// The size, in bytes.
    pub size: u64,
    /// The time since which it is there, in milliseconds since 1970 on the store's clock.
    pub since_ms: i64,
    key: Key,
}

/// The shared store of one controller. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    store: SharedStore,
    cache: Cache,
    fetching: Arc<Semaphore>,
    measured: Arc<Mutex<BTreeMap<&'static str, (Instant, BlobUsage)>>>,
}

impl SharedStore {
    /// Makes the client of an object store. It connects when it is used.
    ///
    /// # Errors
    /// [`S3Error`]
    pub fn of(options: &S3Options) -> Result<Self, S3Error> {
        Ok(Self {
            objects: options.client()?,
            prefix: Key::from(options.url.prefix()),
            place: options.place().into(),
            cached: CACHED,
        })
    }

    /// Returns the same store, of which a controller keeps so many bytes on its own disk.
    pub fn caching(self, bytes: u64) -> Self {
        Self { cached: bytes, ..self }
    }

    pub(crate) fn objects(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.objects)
    }

    pub(crate) fn cached_in(&self, directory: &Path) -> Result<Shared, BlobError> {
        Ok(Shared {
            store: self.clone(),
            cache: Cache::open(directory, self.cached)?,
            fetching: Arc::new(Semaphore::new(FETCHED_AT_ONCE)),
            measured: Arc::default(),
        })
    }

    fn failed(&self, error: object_store::Error) -> BlobError {
        Failures(Some(Arc::clone(&self.place))).of(error)
    }

    fn key(&self, parts: &[&str]) -> Key {
        parts.iter().fold(self.prefix.clone(), |key, part| key.join(*part))
    }
}

impl StoredObject {
    /// Returns true if the object is so old that no upload still relies on it without a registration.
    pub fn is_old(&self, now_ms: i64) -> bool {
        now_ms.saturating_sub(self.since_ms) > ms(GRACE)
    }
}

impl Shared {
    pub(crate) fn place(&self) -> Arc<str> {
        Arc::clone(&self.store.place)
    }

    /// Returns the name of a new object of a blob.
    pub(crate) fn new_key(&self, folder: &str, digest: &Digest) -> Result<Key, BlobError> {
        let mut number = [0; 16];
        getrandom::fill(&mut number).map_err(|error| BlobError::Spool(std::io::Error::other(error)))?;
        Ok(self.folder_of(folder, digest).join(hex::encode(number)))
    }

    fn folder_of(&self, folder: &str, digest: &Digest) -> Key {
        let name = digest.to_string();
        self.store.key(&[folder, name.get(..2).unwrap_or_default(), &name])
    }

    /// Returns the objects with a blob's bytes, the newest first.
    pub(crate) async fn of(&self, folder: &str, digest: &Digest) -> Result<Vec<StoredObject>, BlobError> {
        let mut found = self.below(&self.folder_of(folder, digest)).await?;
        found.sort_by(|one, other| (other.since_ms, &other.key).cmp(&(one.since_ms, &one.key)));
        Ok(found)
    }

    /// Returns the newest object with a blob's bytes.
    pub(crate) async fn newest(
        &self,
        folder: &str,
        digest: &Digest,
    ) -> Result<Option<StoredObject>, BlobError> {
        Ok(self.of(folder, digest).await?.into_iter().next())
    }

    async fn below(&self, prefix: &Key) -> Result<Vec<StoredObject>, BlobError> {
        let mut found = Vec::new();
        let mut listed = self.store.objects.list(Some(prefix));
        while let Some(meta) = listed.next().await.transpose().map_err(|error| self.store.failed(error))? {
            // Others may have put objects there that are none of Periapt's.
            let parts: Vec<String> = meta.location.parts().map(|part| part.as_ref().to_owned()).collect();
            if let [.., digest, number] = parts.as_slice()
                && let Ok(digest) = digest.parse()
                && number.len() == 32
            {
                let since_ms = meta.last_modified.timestamp_millis();
                found.push(StoredObject { digest, size: meta.size, since_ms, key: meta.location });
            }
        }
        Ok(found)
    }

    pub(crate) async fn delete(&self, object: &StoredObject) -> Result<(), BlobError> {
        match self.store.objects.delete(&object.key).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.store.failed(error)),
        }
    }

    /// Returns true if the blob was stored a short while ago, so that it stays until it is registered.
    pub(crate) async fn has_young(&self, folder: &str, digest: &Digest) -> Result<bool, BlobError> {
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, ms);
        match self.newest(folder, digest).await? {
            Some(object) if now_ms.saturating_sub(object.since_ms) < ms(YOUNG) => {
                self.has_its_bytes(&object).await
            }
            _ => Ok(false),
        }
    }

    /// Returns true if the store has the blob's bytes under its name.
    pub(crate) async fn is_intact(&self, folder: &str, digest: &Digest) -> Result<bool, BlobError> {
        match self.newest(folder, digest).await? {
            Some(object) => self.has_its_bytes(&object).await,
            None => Ok(false),
        }
    }

    async fn has_its_bytes(&self, object: &StoredObject) -> Result<bool, BlobError> {
        if object.size > LARGEST {
            return Ok(false);
        }
        let (mut hasher, mut size) = (Sha256::new(), 0);
        let read = async {
            let mut pieces = self.store.objects.get(&object.key).await?.into_stream();
            while let Some(piece) = pieces.try_next().await? {
                size += piece.len() as u64;
                // A store that sends more than it has listed may never end.
                if size > object.size {
                    break;
                }
                hasher.update(&piece);
            }
            Ok(())
        };
        match read.await {
            Ok(()) => {
                Ok(size == object.size && Digest::from_bytes(hasher.finalize().into()) == object.digest)
            }
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.store.failed(error)),
        }
    }

    /// Returns a file with a blob's bytes and their number, after all of them were checked; none if there is no such blob.
    pub(crate) async fn checked(
        &self,
        folder: &'static str,
        digest: &Digest,
    ) -> Result<Option<(File, u64)>, BlobError> {
        let name = (folder, *digest);
        if let Some(found) = self.in_cache(name).await {
            return Ok(Some(found));
        }
        let turn = self.cache.fetching(name);
        let _turn = turn.lock().await;
        if let Some(found) = self.in_cache(name).await {
            return Ok(Some(found));
        }
        // The semaphore is never closed.
        let _fetching = self.fetching.acquire().await;
        let objects = self.of(folder, digest).await?;
        let mut is_damaged = false;
        for object in &objects {
            match self.fetch(folder, object).await? {
                Fetched::Whole(file) => return Ok(Some((file, object.size))),
                Fetched::Gone => {}
                Fetched::Damaged => {
                    is_damaged = true;
                    tracing::error!(place = %self.store.place, key = %object.key, "an object has other bytes than its name says");
                }
            }
        }
        match is_damaged {
            true => Err(BlobError::Damaged { digest: *digest, place: self.store.place.to_string() }),
            false => Ok(None),
        }
    }

    async fn in_cache(&self, name: crate::cache::Name) -> Option<(File, u64)> {
        let cache = self.cache.clone();
        let found = tokio::task::spawn_blocking(move || cache.get(name)).await.ok()??;
        Some((File::from_std(found.0), found.1))
    }

    async fn fetch(&self, folder: &'static str, object: &StoredObject) -> Result<Fetched, BlobError> {
        if object.size > LARGEST {
            return Ok(Fetched::Damaged);
        }
        let failed = |error: object_store::Error| self.store.failed(error);
        let mut pieces = match self.store.objects.get(&object.key).await {
            Ok(found) => found.into_stream(),
            Err(object_store::Error::NotFound { .. }) => return Ok(Fetched::Gone),
            Err(error) => return Err(failed(error)),
        };
        let unfinished = self.cache.unfinished().map_err(BlobError::Spool)?;
        let mut file = File::from_std(unfinished.as_file().try_clone().map_err(BlobError::Spool)?);
        let (mut hasher, mut size) = (Sha256::new(), 0);
        while let Some(piece) = pieces.try_next().await.map_err(failed)? {
            size += piece.len() as u64;
            if size > object.size {
                return Ok(Fetched::Damaged);
            }
            hasher.update(&piece);
            file.write_all(&piece).await.map_err(BlobError::Spool)?;
        }
        file.flush().await.map_err(BlobError::Spool)?;
        if size != object.size || Digest::from_bytes(hasher.finalize().into()) != object.digest {
            return Ok(Fetched::Damaged);
        }
        let (cache, name) = (self.cache.clone(), (folder, object.digest));
        let kept = tokio::task::spawn_blocking(move || cache.keep(name, unfinished, size)).await;
        let kept = kept.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        Ok(Fetched::Whole(File::from_std(kept.map_err(BlobError::Spool)?)))
    }

    /// Returns the number and the size of the blobs, as they were a few minutes ago.
    pub(crate) async fn usage(&self, folder: &'static str) -> Result<BlobUsage, BlobError> {
        let measured = self.measured.lock().get(folder).copied();
        if let Some((at, usage)) = measured
            && at.elapsed() < MEASURED_EVERY
        {
            return Ok(usage);
        }
        let mut usage = BlobUsage::default();
        for object in self.below(&self.store.key(&[folder])).await? {
            usage.count += 1;
            usage.bytes += object.size;
        }
        self.measured.lock().insert(folder, (Instant::now(), usage));
        Ok(usage)
    }
}

/// The result of a fetch.
enum Fetched {
    Whole(File),
    Gone,
    Damaged,
}

impl Blobs {
    /// Returns the place of a store that several controllers share, in words; none for a local directory.
    pub fn place(&self) -> Option<Arc<str>> {
        self.shared.as_ref().map(Shared::place)
    }

    /// Returns all objects of a shared store in this namespace; none for a local directory.
    ///
    /// # Errors
    /// [`BlobError::Shared`]
    pub async fn objects(&self) -> Result<Vec<StoredObject>, BlobError> {
        match &self.shared {
            Some(shared) => shared.below(&shared.store.key(&[self.folder()])).await,
            None => Ok(Vec::new()),
        }
    }

    /// Deletes an object of a shared store.
    ///
    /// # Errors
    /// [`BlobError::Shared`]
    pub async fn delete_object(&self, object: &StoredObject) -> Result<(), BlobError> {
        match &self.shared {
            Some(shared) => shared.delete(object).await,
            None => Ok(()),
        }
    }
}

fn ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}
