//! Charm archives, addressed by their digests.

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderValue, Method, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use periapt_host_api::{CharmDigest, ErrorCode, api::MAX_ARCHIVE_BYTES, command::CharmUploaded};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::{Client, ClientError, Result, error::chain, request::full};

/// The longest pause in a transfer: a whole archive may take longer than one answer.
const PROGRESS_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);

impl Client {
    /// Whether the controller has an archive.
    pub async fn has_charm(&self, digest: &CharmDigest) -> Result<bool> {
        match self.call(Method::HEAD, charm_path(digest)).response().await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uploads an archive that is in memory; its digest is taken from its bytes.
    pub async fn upload_charm(&self, archive: Bytes) -> Result<CharmUploaded> {
        let digest = CharmDigest::of(&archive);
        let call = self.call(Method::PUT, charm_path(&digest)).header(header::CONTENT_TYPE, archive_type());
        self.uploaded(call.body(full(archive)).upload().await?).await
    }

    /// Uploads an archive as it is read. The controller checks that it has the digest, and keeps nothing if it
    /// has not.
    pub async fn upload_charm_stream(
        &self,
        digest: &CharmDigest,
        archive: impl Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    ) -> Result<CharmUploaded> {
        let frames = archive.map(|piece| piece.map(Frame::data).map_err(Into::into));
        let call = self.call(Method::PUT, charm_path(digest)).header(header::CONTENT_TYPE, archive_type());
        self.uploaded(call.body(StreamBody::new(frames).boxed_unsync()).upload().await?).await
    }

    async fn uploaded(&self, response: http::Response<hyper::body::Incoming>) -> Result<CharmUploaded> {
        let collected = tokio::time::timeout(PROGRESS_WITHIN, response.into_body().collect()).await;
        let body = collected
            .map_err(|_| self.unreachable("the answer does not come", true))?
            .map_err(|error| self.unreachable(chain(&error), true))?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| self.protocol(error.to_string()))
    }

    /// Fetches an archive into memory and checks its digest.
    pub async fn fetch_charm(&self, digest: &CharmDigest) -> Result<Bytes> {
        let mut archive = Vec::new();
        self.fetch_charm_to(digest, &mut archive).await?;
        Ok(archive.into())
    }

    /// Fetches an archive into a writer and checks its digest. What was written is worth nothing unless this
    /// succeeds. Answers the number of bytes.
    pub async fn fetch_charm_to(
        &self,
        digest: &CharmDigest,
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64> {
        let mut body = self.get(charm_path(digest)).response().await?.into_body();
        let mut hasher = Sha256::new();
        let mut length = 0;
        loop {
            let next = tokio::time::timeout(PROGRESS_WITHIN, body.frame())
                .await
                .map_err(|_| self.unreachable("the archive does not come", false))?;
            let Some(frame) = next else { break };
            let frame = frame.map_err(|error| self.unreachable(chain(&error), false))?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len() as u64;
            if length > MAX_ARCHIVE_BYTES {
                return Err(self.protocol(format!("charm {digest} is larger than {MAX_ARCHIVE_BYTES} bytes")));
            }
            hasher.update(&data);
            writer.write_all(&data).await.map_err(|error| ClientError::Local(error.to_string()))?;
        }
        writer.flush().await.map_err(|error| ClientError::Local(error.to_string()))?;
        let got = CharmDigest::from_bytes(hasher.finalize().into());
        match got == *digest {
            true => Ok(length),
            false => Err(self.protocol(format!("charm {digest} arrived with digest {got}"))),
        }
    }
}

fn charm_path(digest: &CharmDigest) -> String {
    format!("/v1/charms/{digest}")
}

fn archive_type() -> HeaderValue {
    HeaderValue::from_static("application/zip")
}
