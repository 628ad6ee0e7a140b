//! The check of a shared store before it is used, and the object that says whose blobs it holds.

use object_store::{ObjectStoreExt as _, PutMode, PutOptions, PutPayload, path::Path as Key};
use periapt_host_api::StoreId;

use super::SharedStore;
use crate::{BlobError, Blobs, S3Failure};

/// The name of the object that says whose blobs a place holds.
const OWNER: &str = "periapt-store";

/// The bytes of the object that the check writes.
const PROBE: &[u8] = b"periapt writes, reads and deletes this object when a controller starts\n";

impl SharedStore {
    /// Checks that the store answers and does all that blobs need: writes an object, reads it, lists it, deletes it.
    ///
    /// # Errors
    /// [`BlobError::Shared`]
    pub async fn check(&self) -> Result<(), BlobError> {
        let mut number = [0; 8];
        getrandom::fill(&mut number).map_err(|error| BlobError::Spool(std::io::Error::other(error)))?;
        let key = self.key(&["periapt-check", &hex::encode(number)]);
        self.objects.put(&key, PutPayload::from_static(PROBE)).await.map_err(|error| self.failed(error))?;
        let tried = self.tried(&key).await;
        let deleted = self.objects.delete(&key).await.map_err(|error| self.failed(error));
        tried.and(deleted)
    }

    async fn tried(&self, key: &Key) -> Result<(), BlobError> {
        use futures_util::TryStreamExt as _;
        let failed = |error| self.failed(error);
        let read = self.objects.get(key).await.map_err(failed)?.bytes().await.map_err(failed)?;
        let folder = self.key(&["periapt-check"]);
        let listed: Vec<_> = self.objects.list(Some(&folder)).try_collect().await.map_err(failed)?;
        match read == PROBE && listed.iter().any(|meta| meta.location == *key) {
            true => Ok(()),
            false => Err(BlobError::Shared { place: self.place.to_string(), failure: S3Failure::ReadBack }),
        }
    }

    /// Returns the id of the store whose blobs are there.
    ///
    /// # Errors
    /// [`BlobError::Shared`]
    pub async fn owner(&self) -> Result<Option<String>, BlobError> {
        match self.objects.get(&self.key(&[OWNER])).await {
            Ok(found) => {
                let bytes = found.bytes().await.map_err(|error| self.failed(error))?;
                Ok(Some(String::from_utf8_lossy(bytes.get(..64).unwrap_or(&bytes)).trim().to_owned()))
            }
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// Refuses a place that holds the blobs of any store.
    ///
    /// # Errors
    /// [`BlobError::Shared`], [`BlobError::OtherStore`]
    pub async fn is_free(&self) -> Result<(), BlobError> {
        match self.owner().await? {
            None => Ok(()),
            Some(found) => Err(self.taken(found, "a new one".to_owned())),
        }
    }

    async fn claim(&self, store: StoreId) -> Result<(), BlobError> {
        let own = store.to_string();
        if self.owner().await?.is_none() {
            let text = PutPayload::from(own.clone().into_bytes());
            let create = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match self.objects.put_opts(&self.key(&[OWNER]), text, create).await {
                Ok(_)
                | Err(object_store::Error::AlreadyExists { .. } | object_store::Error::Precondition { .. }) =>
                    {}
                Err(error) => return Err(self.failed(error)),
            }
        }
        match self.owner().await? {
            Some(found) if found == own => Ok(()),
            found => Err(self.taken(found.unwrap_or_default(), own)),
        }
    }

    fn taken(&self, found: String, own: String) -> BlobError {
        BlobError::OtherStore {
            place: self.place.to_string(),
            found,
            own,
            object: self.key(&[OWNER]).to_string(),
        }
    }
}

impl Blobs {
    /// Marks a shared store as that of one set of controllers, so that no other deletes its blobs as unused.
    ///
    /// # Errors
    /// [`BlobError::Shared`], [`BlobError::OtherStore`]
    pub async fn claim(&self, store: StoreId) -> Result<(), BlobError> {
        match &self.shared {
            Some(shared) => shared.store.claim(store).await,
            None => Ok(()),
        }
    }
}
