//! Contents as they are stored: as a blob, or as parts that other contents share.

use std::ops::Range;

use bytes::Bytes;
use futures_util::{
    StreamExt as _, TryStreamExt as _,
    stream::{self, BoxStream},
};
use periapt_blobs::{BlobError, Blobs};
use periapt_host_api::{Digest, resource::ArchiveParts};
use periapt_model::Root;

use super::Contents;

/// A content, with the blobs that make its bytes.
#[derive(Debug, Clone)]
pub(crate) struct StoredContent {
    digest: Digest,
    /// The parts, and the size of the whole in bytes; none of a content that is a blob.
    parts: Option<(ArchiveParts, u64)>,
}

impl StoredContent {
    /// Returns a content that is a blob.
    pub(crate) fn blob(digest: Digest) -> Self {
        Self { digest, parts: None }
    }

    /// Returns a content for resources, in the form that is registered.
    pub(crate) fn of_resource(root: &Root, digest: &Digest) -> Self {
        let known = root.resource_content(digest);
        let parts = known.and_then(|known| Some((known.parts.clone()?, known.size)));
        Self { digest: *digest, parts }
    }

    /// Returns the digest of the whole.
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// Returns the digests of the blobs that make it.
    pub(crate) fn blobs(&self) -> Vec<Digest> {
        match &self.parts {
            None => vec![self.digest],
            Some((parts, _)) => parts.digests().into_iter().collect(),
        }
    }

    /// Fetches the blobs that this controller lacks from other controllers, as far as they have them.
    pub(crate) async fn obtain(&self, contents: &Contents) {
        for digest in self.blobs() {
            contents.copies.obtain(contents, &digest).await;
        }
    }

    /// Returns the size in bytes; none if a blob does not exist.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub(crate) async fn size(&self, blobs: &Blobs) -> Result<Option<u64>, BlobError> {
        let Some((parts, size)) = &self.parts else { return blobs.size(&self.digest).await };
        for (part, expected) in parts.sizes(*size).collect::<Vec<_>>() {
            if blobs.size(&part).await? != Some(expected) {
                return Ok(None);
            }
        }
        Ok(Some(*size))
    }

    /// Returns the size in bytes of a content that is about to be read; none if a blob does not exist. Blobs of a shared
    /// store are fetched and checked.
    ///
    /// # Errors
    /// [`BlobError`]
    pub(crate) async fn readable_size(&self, blobs: &Blobs) -> Result<Option<u64>, BlobError> {
        let Some((parts, size)) = &self.parts else { return blobs.readable_size(&self.digest).await };
        for (part, expected) in parts.sizes(*size).collect::<Vec<_>>() {
            if blobs.readable_size(&part).await? != Some(expected) {
                return Ok(None);
            }
        }
        Ok(Some(*size))
    }

    /// Returns true if all blobs exist and have their digests.
    ///
    /// # Errors
    /// [`BlobError::Store`]
    pub(crate) async fn is_intact(&self, blobs: &Blobs) -> Result<bool, BlobError> {
        for digest in self.blobs() {
            if !blobs.is_intact(&digest).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the content, or a range of it; none if it does not exist. A blob of several that is missing ends the stream
    /// with an error.
    ///
    /// # Errors
    /// [`BlobError`]
    pub(crate) async fn read(
        &self,
        blobs: &Blobs,
        range: Option<Range<u64>>,
    ) -> Result<Option<BoxStream<'static, Result<Bytes, BlobError>>>, BlobError> {
        let Some((parts, size)) = &self.parts else {
            return Ok(blobs.get(&self.digest, range).await?.map(|blob| blob.content));
        };
        let segments = parts.segments(*size, &range.unwrap_or(0..*size));
        let blobs = blobs.clone();
        let pieces = stream::iter(segments).then(move |segment| {
            let blobs = blobs.clone();
            async move {
                let blob = blobs.get(&segment.part, Some(segment.range)).await?;
                blob.map(|blob| blob.content).ok_or(BlobError::Missing { digest: segment.part })
            }
        });
        Ok(Some(pieces.try_flatten().boxed()))
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::resource::{ArchiveLayer, frame_ranges};

    use super::*;

    async fn put(blobs: &Blobs, bytes: &'static [u8]) -> Digest {
        let mut spool = blobs.spool().await.unwrap();
        spool.write(&Bytes::from_static(bytes)).await.unwrap();
        blobs.put_spooled(spool.end().await.unwrap()).await.unwrap();
        Digest::of(bytes)
    }

    async fn read(
        stored: &StoredContent,
        blobs: &Blobs,
        range: Option<Range<u64>>,
    ) -> Result<Vec<u8>, BlobError> {
        let pieces: Vec<Bytes> = stored.read(blobs, range).await?.unwrap().try_collect().await?;
        Ok(pieces.concat())
    }

    #[tokio::test]
    async fn a_content_in_parts_is_read_whole_and_in_ranges_and_is_nothing_without_one_of_them() {
        let directory = tempfile::TempDir::new().unwrap();
        let blobs = Blobs::local(directory.path()).unwrap();
        let whole = b"head-LAYER-between-OTHER-tail";
        let layer = |at, size, digest| ArchiveLayer { at, size, digest };
        let layers =
            vec![layer(5, 5, put(&blobs, b"LAYER").await), layer(19, 5, put(&blobs, b"OTHER").await)];
        assert_eq!(frame_ranges(&layers, 29), [0..5, 10..19, 24..29]);
        let frame = put(&blobs, b"head--between--tail").await;
        let digest = Digest::of(whole);
        let stored = StoredContent { digest, parts: Some((ArchiveParts { frame, layers }, 29)) };
        assert_eq!(stored.size(&blobs).await.unwrap(), Some(29));
        assert_eq!(stored.readable_size(&blobs).await.unwrap(), Some(29));
        assert!(stored.is_intact(&blobs).await.unwrap());
        assert_eq!(read(&stored, &blobs, None).await.unwrap(), whole);
        assert_eq!(read(&stored, &blobs, Some(7..21)).await.unwrap(), whole[7..21]);

        blobs.delete(&Digest::of(b"OTHER")).await.unwrap();
        assert_eq!(stored.size(&blobs).await.unwrap(), None);
        assert!(!stored.is_intact(&blobs).await.unwrap());
        assert!(matches!(read(&stored, &blobs, None).await, Err(BlobError::Missing { .. })));
        assert_eq!(read(&stored, &blobs, Some(0..19)).await.unwrap(), whole[..19]);
    }
}
