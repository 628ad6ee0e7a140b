//! Uploads and downloads of blobs, piece by piece.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use periapt_host_api::Digest;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::{
    Client, ClientError, RequestOutcome, Result,
    error::chain,
    request::{Content, Received},
};

/// The longest pause in a transfer. A whole blob may take longer than other calls.
const PROGRESS_WITHIN: Duration = Duration::from_secs(30);

/// A blob to fetch, with its expected properties.
pub(super) struct BlobRequest<'a> {
    /// The path of the request.
    pub(super) path: String,
    /// The kind of blob, for messages: `charm`, `resource`.
    pub(super) what: &'static str,
    pub(super) digest: &'a Digest,
    /// The largest size to accept, in bytes.
    pub(super) limit: u64,
}

/// Returns content that is read in pieces, from the first piece at each attempt.
pub(super) fn pieces<'a, S>(content: impl Fn() -> S + Send + Sync + 'a) -> Content<'a>
where
    S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
{
    let framed = |piece: std::io::Result<Bytes>| piece.map(Frame::data).map_err(Into::into);
    Content::Made(Box::new(move || StreamBody::new(content().map(framed)).boxed_unsync()))
}

impl Client {
    /// Reads the answer to an upload.
    pub(super) async fn uploaded<T: DeserializeOwned>(&self, received: Received) -> Result<T> {
        let Received { peer, response } = received;
        let collected = tokio::time::timeout(PROGRESS_WITHIN, response.into_body().collect()).await;
        let body = collected
            .map_err(|_| peer.unreachable("no answer arrived", RequestOutcome::Unknown))?
            .map_err(|error| peer.unreachable(chain(&error), RequestOutcome::Unknown))?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| peer.protocol(error.to_string()))
    }

    /// Fetches a blob into a writer, checks its digest and returns its size in bytes. After an error, the caller must
    /// discard what was written.
    pub(super) async fn fetch_blob(
        &self,
        wanted: BlobRequest<'_>,
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64> {
        let BlobRequest { path, what, digest, limit } = wanted;
        let Received { peer, response } = self.get(path).response().await?;
        let mut body = response.into_body();
        let mut hasher = Sha256::new();
        let mut length = 0;
        loop {
            let next = tokio::time::timeout(PROGRESS_WITHIN, body.frame()).await.map_err(|_| {
                peer.unreachable(
                    format!("the download of the {what} stalled"),
                    RequestOutcome::NothingHappened,
                )
            })?;
            let Some(frame) = next else { break };
            let frame =
                frame.map_err(|error| peer.unreachable(chain(&error), RequestOutcome::NothingHappened))?;
            let Ok(data) = frame.into_data() else { continue };
            length += data.len() as u64;
            if length > limit {
                return Err(peer.protocol(format!("{what} {digest} is larger than {limit} bytes")));
            }
            hasher.update(&data);
            writer.write_all(&data).await.map_err(|error| ClientError::Local(error.to_string()))?;
        }
        writer.flush().await.map_err(|error| ClientError::Local(error.to_string()))?;
        let got = Digest::from_bytes(hasher.finalize().into());
        match got == *digest {
            true => Ok(length),
            false => Err(peer.damaged(what, *digest, got)),
        }
    }
}
