//! The check that stored blobs still have their digests.

use std::sync::Arc;

use futures_util::StreamExt as _;
use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

use crate::{Blob, BlobError, Blobs};

/// The most blobs that are checked at a time. Each check occupies a core and the disk, and callers can start many.
const AT_ONCE: usize = 2;

pub(crate) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(AT_ONCE))
}

impl Blobs {
    /// Returns true if the blob exists and its bytes have its digest. Reads the blob piece by piece.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub async fn is_intact(&self, digest: &Digest) -> Result<bool, BlobError> {
        // The semaphore is never closed.
        let _permit = self.verifying.acquire().await;
        if let Some(shared) = &self.shared {
            // Each byte of the store's own, whatever is in this controller's cache: other controllers read it, too.
            return shared.is_intact(self.folder(), digest).await;
        }
        let Some(Blob { size, mut content, .. }) = self.get(digest, None).await? else { return Ok(false) };
        let (mut hasher, mut read) = (Sha256::new(), 0);
        while let Some(piece) = content.next().await {
            let piece = piece?;
            read += piece.len() as u64;
            hasher.update(&piece);
            // Reads from the page cache never wait: this lets other tasks of the thread run.
            tokio::task::yield_now().await;
        }
        Ok(read == size && Digest::from_bytes(hasher.finalize().into()) == *digest)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::PathBuf};

    use bytes::Bytes;

    use super::*;

    async fn put(blobs: &Blobs, content: &'static [u8]) {
        let mut spool = blobs.spool().await.unwrap();
        spool.write(&Bytes::from_static(content)).await.unwrap();
        blobs.put_spooled(spool.end().await.unwrap()).await.unwrap();
    }

    #[tokio::test]
    async fn a_damaged_blob_is_not_intact_and_is_replaced_by_the_next_upload() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let digest = Digest::of(b"one two");
        assert!(!blobs.is_intact(&digest).await.unwrap(), "there is none");
        put(&blobs, b"one two").await;
        assert!(blobs.is_intact(&digest).await.unwrap());
        let name = digest.to_string();
        let path: PathBuf = directory.path().join(&name[..2]).join(&name);
        for damaged in [&b"one twO"[..], b"one", b"one two and more", b""] {
            fs::write(&path, damaged).unwrap();
            assert!(!blobs.is_intact(&digest).await.unwrap());
            put(&blobs, b"one two").await;
            assert_eq!(fs::read(&path).unwrap(), b"one two");
        }
    }
}
