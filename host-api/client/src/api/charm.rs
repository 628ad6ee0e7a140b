//! Charm archives, addressed by digest.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Method, header};
use periapt_host_api::{Digest, ErrorCode, api::MAX_ARCHIVE_BYTES, command::CharmUploaded};

use super::blob::{BlobRequest, pieces};
use crate::{Client, ClientError, PartialFile, Result, request::Content};

/// The longest time to send an archive, queue for its check and check it, the same as the controller's.
const UPLOAD_WITHIN: Duration = Duration::from_secs(600);

impl Client {
    /// Returns true if the controller has the archive, and need not read it again: a deployment needs no upload of it.
    pub async fn has_charm(&self, digest: &Digest) -> Result<bool> {
        match self.call(Method::HEAD, charm_path(digest)).response().await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uploads an archive from memory and computes its digest.
    pub async fn upload_charm(&self, archive: Bytes) -> Result<CharmUploaded> {
        let digest = Digest::of(&archive);
        let call = self.call(Method::PUT, charm_path(&digest)).header(header::CONTENT_TYPE, archive_type());
        self.uploaded(call.content(Content::Whole(archive)).upload(UPLOAD_WITHIN).await?).await
    }

    /// Uploads an archive as it is read, from its beginning at each attempt. The controller checks the digest, and
    /// stores nothing if it differs.
    pub async fn upload_charm_stream<S>(
        &self,
        digest: &Digest,
        archive: impl Fn() -> S + Send + Sync,
    ) -> Result<CharmUploaded>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let call = self.call(Method::PUT, charm_path(digest)).header(header::CONTENT_TYPE, archive_type());
        self.uploaded(call.content(pieces(archive)).upload(UPLOAD_WITHIN).await?).await
    }

    /// Fetches an archive into memory and checks its digest.
    pub async fn fetch_charm(&self, digest: &Digest) -> Result<Bytes> {
        let mut archive = Vec::new();
        self.fetch_blob(charm(digest), &mut archive).await?;
        Ok(archive.into())
    }

    /// Fetches what a file lacks of an archive, and checks the digest of the whole. After an error, the file keeps what has
    /// arrived if a later call may fetch the rest.
    pub async fn fetch_charm_to(&self, digest: &Digest, file: &mut PartialFile) -> Result<()> {
        self.fetch_rest(charm(digest), file).await
    }
}

fn charm(digest: &Digest) -> BlobRequest<'_> {
    BlobRequest { path: charm_path(digest), what: "charm", digest, limit: MAX_ARCHIVE_BYTES }
}

fn charm_path(digest: &Digest) -> String {
    format!("/v1/charms/{digest}")
}

fn archive_type() -> HeaderValue {
    HeaderValue::from_static("application/zip")
}
