//! Uploads of blobs in pieces, without holding a whole blob in memory.

use std::sync::Arc;

use bytes::Bytes;
use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload, path::Path as Key};
use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};

use crate::{BlobError, Blobs, error::Failures};

/// The bytes gathered for one part of an upload. Object stores want parts of equal size, of at least 5 MiB.
const PART: usize = 8 << 20;

/// A blob that is being uploaded. Unless it is finished, nothing of it is stored.
#[derive(Debug)]
pub struct Incoming {
    expected: Digest,
    to: Destination,
    failures: Failures,
    hasher: Sha256,
    size: u64,
    waiting: Vec<Bytes>,
    waiting_bytes: usize,
}

/// The place where an upload goes.
#[derive(Debug)]
enum Destination {
    /// A local file, or an object in parts.
    Parts(Box<dyn MultipartUpload>),
    /// An object of less than a part, so far: it needs one request.
    Object { store: Arc<dyn ObjectStore>, key: Key },
    /// The blob was stored a short while ago: what comes is checked, and not stored again.
    Present,
}

impl Blobs {
    /// Starts an upload of a blob with this digest.
    ///
    /// # Errors
    /// [`BlobError::Store`], [`BlobError::Shared`]
    pub async fn begin(&self, expected: Digest) -> Result<Incoming, BlobError> {
        match &self.shared {
            Some(shared) if shared.has_young(self.folder(), &expected).await? => {
                Ok(self.incoming(expected, Destination::Present))
            }
            _ => self.begin_anew(expected).await,
        }
    }

    /// Starts an upload of a blob, even if it is stored.
    pub(crate) async fn begin_anew(&self, expected: Digest) -> Result<Incoming, BlobError> {
        let to = match &self.shared {
            Some(shared) => {
                let key = shared.new_key(self.folder(), &expected)?;
                Destination::Object { store: Arc::clone(&self.store), key }
            }
            None => {
                let started = self.store.put_multipart(&self.key(&expected)).await;
                Destination::Parts(started.map_err(BlobError::Store)?)
            }
        };
        Ok(self.incoming(expected, to))
    }

    fn incoming(&self, expected: Digest, to: Destination) -> Incoming {
        Incoming {
            expected,
            to,
            failures: self.failures(),
            hasher: Sha256::new(),
            size: 0,
            waiting: Vec::new(),
            waiting_bytes: 0,
        }
    }
}

impl Incoming {
    /// Adds the next piece.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn write(&mut self, mut piece: Bytes) -> Result<(), BlobError> {
        self.hasher.update(&piece);
        self.size += piece.len() as u64;
        while self.waiting_bytes + piece.len() >= PART {
            let rest = piece.split_off(PART.saturating_sub(self.waiting_bytes));
            self.waiting.push(piece);
            self.put_part().await?;
            piece = rest;
        }
        if !piece.is_empty() {
            self.waiting_bytes += piece.len();
            self.waiting.push(piece);
        }
        Ok(())
    }

    /// Completes the upload: the blob is durable. Returns its size in bytes.
    ///
    /// # Errors
    /// [`BlobError::WrongDigest`], [`BlobError::Store`], [`BlobError::Shared`]: nothing is stored.
    pub async fn finish(mut self) -> Result<u64, BlobError> {
        let actual = Digest::from_bytes(self.hasher.clone().finalize().into());
        let expected = self.expected;
        if actual != expected {
            self.discard().await;
            return Err(BlobError::WrongDigest { expected, actual });
        }
        let in_parts = matches!(self.to, Destination::Parts(_));
        if in_parts && (!self.waiting.is_empty() || self.size == 0) {
            self.put_part().await?;
        }
        let stored = match &mut self.to {
            Destination::Parts(upload) => upload.complete().await.map(drop),
            Destination::Object { store, key } => {
                let whole: PutPayload = std::mem::take(&mut self.waiting).into_iter().collect();
                store.put(key, whole).await.map(drop)
            }
            Destination::Present => Ok(()),
        };
        stored.map_err(|error| self.failures.of(error))?;
        Ok(self.size)
    }

    /// Aborts the upload.
    pub async fn discard(mut self) {
        if let Destination::Parts(upload) = &mut self.to {
            // The store deletes leftovers later; no reader ever sees them.
            let _ = upload.abort().await;
        }
    }

    async fn put_part(&mut self) -> Result<(), BlobError> {
        let part: PutPayload = std::mem::take(&mut self.waiting).into_iter().collect();
        self.waiting_bytes = 0;
        let put = async {
            if let Destination::Object { store, key } = &self.to {
                self.to = Destination::Parts(store.put_multipart(key).await?);
            }
            match &mut self.to {
                Destination::Parts(upload) => upload.put_part(part).await,
                Destination::Object { .. } | Destination::Present => Ok(()),
            }
        };
        put.await.map_err(|error| self.failures.of(error))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use futures_util::StreamExt as _;

    use super::*;
    use crate::BlobUsage;

    /// Returns all files below a directory.
    fn files(directory: &Path) -> Vec<String> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => found.extend(files(&path)),
                false => found.push(path.file_name().unwrap().to_string_lossy().into_owned()),
            }
        }
        found
    }

    async fn take(blobs: &Blobs, expected: Digest, pieces: &[&[u8]]) -> Result<u64, BlobError> {
        let mut incoming = blobs.begin(expected).await.unwrap();
        for piece in pieces {
            incoming.write(Bytes::copy_from_slice(piece)).await.unwrap();
        }
        incoming.finish().await
    }

    #[tokio::test]
    async fn pieces_of_any_size_become_one_blob() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap().namespace("resources");
        let content: Vec<u8> = (0..2 * PART + 77).map(|index| (index % 251) as u8).collect();
        for cuts in [vec![0], vec![1, PART], vec![PART - 1, 2 * PART + 5], vec![PART, 2 * PART]] {
            let (mut pieces, mut from) = (Vec::new(), 0);
            for cut in cuts.into_iter().chain([content.len()]) {
                pieces.push(&content[from..cut]);
                from = cut;
            }
            let digest = Digest::of(&content);
            assert_eq!(take(&blobs, digest, &pieces).await.unwrap(), content.len() as u64);
            let read = blobs.get(&digest, None).await.unwrap().unwrap();
            let read: Vec<_> = read.content.map(|piece| piece.unwrap()).collect().await;
            assert!(read.concat() == content);
        }
        let nothing = Digest::of(b"");
        assert_eq!(take(&blobs, nothing, &[]).await.unwrap(), 0);
        assert_eq!(blobs.size(&nothing).await.unwrap(), Some(0));
    }

    #[tokio::test]
    async fn nothing_stays_of_what_was_not_finished_or_is_something_else() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let digest = Digest::of(b"wanted");
        assert!(matches!(take(&blobs, digest, &[b"other"]).await, Err(BlobError::WrongDigest { .. })));
        let mut incoming = blobs.begin(digest).await.unwrap();
        incoming.write(vec![7; PART + 1].into()).await.unwrap();
        incoming.discard().await;
        assert_eq!(blobs.size(&digest).await.unwrap(), None);
        assert_eq!(files(directory.path()), Vec::<String>::new());
    }

    #[tokio::test]
    async fn what_a_crash_left_is_swept_away_and_blobs_stay() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap().namespace("resources");
        let digest = Digest::of(b"kept");
        take(&blobs, digest, &[b"kept"]).await.unwrap();
        let mut incoming = blobs.begin(Digest::of(b"cut short")).await.unwrap();
        incoming.write(vec![7; PART].into()).await.unwrap();
        assert_eq!(files(directory.path()).len(), 2);
        // Simulates a crash of the process.
        std::mem::forget(incoming);
        blobs.sweep().await.unwrap();
        assert_eq!(files(directory.path()), [digest.to_string()]);
    }

    #[tokio::test]
    async fn namespaces_do_not_see_each_others_blobs() {
        let directory = tempfile::TempDir::new().unwrap();
        let charms = Blobs::local(directory.path()).unwrap();
        let resources = charms.namespace("resources");
        let digest = Digest::of(b"same");
        take(&charms, digest, &[b"same"]).await.unwrap();
        assert_eq!(resources.size(&digest).await.unwrap(), None);
        take(&resources, digest, &[b"same"]).await.unwrap();
        let one = BlobUsage { count: 1, bytes: 4 };
        assert_eq!(charms.digests().await.unwrap(), [digest].into());
        assert_eq!(resources.digests().await.unwrap(), [digest].into());
        assert_eq!((charms.usage().await.unwrap(), resources.usage().await.unwrap()), (one, one));
        charms.delete(&digest).await.unwrap();
        assert_eq!(resources.size(&digest).await.unwrap(), Some(4));
        let none = BlobUsage::default();
        assert_eq!((charms.usage().await.unwrap(), resources.usage().await.unwrap()), (none, one));
    }
}
