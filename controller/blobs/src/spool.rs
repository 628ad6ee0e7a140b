//! Uploads that are checked before they become blobs. Until then the content is in a temporary file, neither in
//! memory nor in the store.

use std::{fs::File, io, ops::Range, os::fd::AsRawFd as _};

use bytes::Bytes;
use futures_util::{StreamExt as _, stream::BoxStream};
use periapt_host_api::Digest;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncWriteExt as _;

use crate::{BlobError, Blobs, pieces};

/// An upload in progress. Its temporary file has no name, so it disappears with the value, or with a crash.
#[derive(Debug)]
pub struct Spool {
    file: tokio::fs::File,
    hasher: Sha256,
    size: u64,
}

/// A complete upload.
#[derive(Debug)]
pub struct Spooled {
    file: tokio::fs::File,
    digest: Digest,
    size: u64,
}

impl Blobs {
    /// Starts an upload into a temporary file, on the disk of a local store or of the cache.
    ///
    /// # Errors
    /// [`BlobError::Spool`]
    pub async fn spool(&self) -> Result<Spool, BlobError> {
        let directory = self.directory.clone();
        let made = tokio::task::spawn_blocking(move || {
            let other = std::env::temp_dir();
            tempfile::tempfile_in(directory.as_deref().unwrap_or(&other))
        });
        let file = made.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(failed)?;
        Ok(Spool { file: tokio::fs::File::from_std(file), hasher: Sha256::new(), size: 0 })
    }

    /// Stores the upload under its digest. An intact blob with that digest stays; a damaged one is replaced.
    ///
    /// # Errors
    /// [`BlobError::Spool`], [`BlobError::WrongDigest`], [`BlobError::Store`]: nothing is stored.
    pub async fn put_spooled(&self, spooled: Spooled) -> Result<(), BlobError> {
        // The digest was computed from the bytes as they came.
        match self.keeps_for_upload(&spooled.digest).await? {
            true => Ok(()),
            false => self.write_part(&spooled, 0..spooled.size, spooled.digest).await,
        }
    }

    /// Stores a range of the upload under the digest of its bytes. An intact blob with that digest stays; a damaged one is
    /// replaced.
    ///
    /// # Errors
    /// [`BlobError::Spool`], [`BlobError::WrongDigest`], [`BlobError::Store`]: nothing is stored.
    pub async fn put_part(
        &self,
        spooled: &Spooled,
        range: Range<u64>,
        digest: Digest,
    ) -> Result<(), BlobError> {
        match self.keeps_for_upload(&digest).await? {
            // The range must have the digest all the same: its sender counts as an uploader of the blob.
            true => spooled.check(range, digest).await,
            false => self.write_part(spooled, range, digest).await,
        }
    }

    /// Returns true if there is an intact blob, which stays until an upload of it is registered.
    async fn keeps_for_upload(&self, digest: &Digest) -> Result<bool, BlobError> {
        match &self.shared {
            Some(shared) => shared.has_young(self.folder(), digest).await,
            None => self.is_intact(digest).await,
        }
    }

    async fn write_part(
        &self,
        spooled: &Spooled,
        range: Range<u64>,
        digest: Digest,
    ) -> Result<(), BlobError> {
        let mut content = spooled.range(range)?;
        let mut incoming = self.begin_anew(digest).await?;
        let copied = async {
            while let Some(piece) = content.next().await {
                incoming.write(piece?).await?;
            }
            Ok(())
        };
        match copied.await {
            Ok(()) => incoming.finish().await.map(drop),
            Err(error) => {
                incoming.discard().await;
                Err(error)
            }
        }
    }
}

impl Spool {
    /// Adds the next piece.
    ///
    /// # Errors
    /// [`BlobError::Spool`]
    pub async fn write(&mut self, piece: &Bytes) -> Result<(), BlobError> {
        self.hasher.update(piece);
        self.size += piece.len() as u64;
        self.file.write_all(piece).await.map_err(failed)
    }

    /// Ends the upload after its last piece.
    ///
    /// # Errors
    /// [`BlobError::Spool`]
    pub async fn end(mut self) -> Result<Spooled, BlobError> {
        self.file.flush().await.map_err(failed)?;
        let digest = Digest::from_bytes(self.hasher.finalize().into());
        Ok(Spooled { file: self.file, digest, size: self.size })
    }
}

impl Spooled {
    /// Returns the SHA-256 of the content.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Returns the size of the content, in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Checks the digest of a range.
    async fn check(&self, range: Range<u64>, expected: Digest) -> Result<(), BlobError> {
        let (mut content, mut hasher) = (self.range(range)?, Sha256::new());
        while let Some(piece) = content.next().await {
            hasher.update(&piece?);
        }
        let actual = Digest::from_bytes(hasher.finalize().into());
        match actual == expected {
            true => Ok(()),
            false => Err(BlobError::WrongDigest { expected, actual }),
        }
    }

    /// Returns a range of the content, piece by piece.
    ///
    /// # Errors
    /// [`BlobError::Spool`]
    pub fn range(
        &self,
        range: Range<u64>,
    ) -> Result<BoxStream<'static, Result<Bytes, BlobError>>, BlobError> {
        Ok(pieces::of(tokio::fs::File::from_std(self.reader()?), range))
    }

    /// Opens the content, from its beginning, for reading only.
    ///
    /// # Errors
    /// [`BlobError::Spool`]
    pub fn reader(&self) -> Result<File, BlobError> {
        File::open(format!("/proc/self/fd/{}", self.file.as_raw_fd())).map_err(failed)
    }
}

fn failed(error: io::Error) -> BlobError {
    BlobError::Spool(error)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read as _, Write as _},
        path::Path,
    };

    use super::*;

    fn files(directory: &Path) -> usize {
        let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
    }

    async fn spooled(blobs: &Blobs, pieces: &[&'static [u8]]) -> Spooled {
        let mut spool = blobs.spool().await.unwrap();
        for piece in pieces {
            spool.write(&Bytes::from_static(piece)).await.unwrap();
        }
        spool.end().await.unwrap()
    }

    #[tokio::test]
    async fn what_was_spooled_is_read_by_others_and_kept_under_its_digest() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let spooled = spooled(&blobs, &[b"one ", b"two"]).await;
        let digest = Digest::of(b"one two");
        assert_eq!((spooled.digest(), spooled.size()), (digest, 7));
        let mut reader = spooled.reader().unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one two");
        assert!(reader.write_all(b"three").is_err(), "who reads it cannot change it");
        assert_eq!(files(directory.path()), 0);
        blobs.put_spooled(spooled).await.unwrap();
        assert_eq!(blobs.size(&digest).await.unwrap(), Some(7));
        let again = self::spooled(&blobs, &[b"one two"]).await;
        blobs.put_spooled(again).await.unwrap();
        assert_eq!(files(directory.path()), 1);
    }

    #[tokio::test]
    async fn a_part_of_an_upload_becomes_a_blob_if_it_has_its_digest() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let spooled = spooled(&blobs, &[b"one ", b"two ", b"three"]).await;
        let (two, other) = (Digest::of(b"two"), Digest::of(b"other"));
        for _ in 0..2 {
            blobs.put_part(&spooled, 4..7, two).await.unwrap();
        }
        assert_eq!(blobs.size(&two).await.unwrap(), Some(3));
        let wrong = blobs.put_part(&spooled, 4..7, other).await;
        assert!(
            matches!(wrong, Err(BlobError::WrongDigest { expected, actual }) if (expected, actual) == (other, two))
        );
        let known = blobs.put_part(&spooled, 0..3, two).await;
        assert!(
            matches!(known, Err(BlobError::WrongDigest { expected, actual }) if (expected, actual) == (two, Digest::of(b"one"))),
            "a blob that is there counts as uploaded by those alone who have its bytes"
        );
        let outside = blobs.put_part(&spooled, 8..99, other).await;
        assert!(matches!(outside, Err(BlobError::Spool(_))));
        assert_eq!(files(directory.path()), 1);
        let read: Vec<Bytes> = spooled.range(2..9).unwrap().map(|piece| piece.unwrap()).collect().await;
        assert_eq!(read.concat(), b"e two t");
    }

    #[tokio::test]
    async fn nothing_stays_of_what_is_not_kept() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        drop(spooled(&blobs, &[b"unwanted"]).await);
        let mut spool = blobs.spool().await.unwrap();
        spool.write(&Bytes::from_static(b"half")).await.unwrap();
        drop(spool);
        assert_eq!(files(directory.path()), 0);
    }
}
