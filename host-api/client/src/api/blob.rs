//! Uploads and downloads of blobs, piece by piece.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Incoming;
use periapt_host_api::{Digest, ErrorCode};
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::{
    Client, ClientError, PartialFile, RequestOutcome, Result,
    error::chain,
    peer::Peer,
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

/// A blob that arrives in pieces. Its digest and its size are not checked.
pub struct Download {
    pub(super) peer: Peer,
    pub(super) body: Incoming,
    pub(super) what: &'static str,
}

impl Download {
    /// Returns the next piece, or none at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>> {
        let nothing = RequestOutcome::NothingHappened;
        loop {
            let next = tokio::time::timeout(PROGRESS_WITHIN, self.body.frame()).await.map_err(|_| {
                self.peer.unreachable(format!("the download of the {} stalled", self.what), nothing)
            })?;
            let Some(frame) = next else { return Ok(None) };
            let frame = frame.map_err(|error| self.peer.unreachable(chain(&error), nothing))?;
            if let Ok(data) = frame.into_data() {
                return Ok(Some(data));
            }
        }
    }
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
        let Received { peer, response, .. } = received;
        let collected = tokio::time::timeout(PROGRESS_WITHIN, response.into_body().collect()).await;
        let body = collected
            .map_err(|_| peer.unreachable("no answer arrived", RequestOutcome::Unknown))?
            .map_err(|error| peer.unreachable(chain(&error), RequestOutcome::Unknown))?;
        serde_json::from_slice(&body.to_bytes()).map_err(|error| peer.protocol(error.to_string()))
    }

    /// Begins to fetch a blob.
    pub(super) async fn download(&self, path: String, what: &'static str) -> Result<Download> {
        let Received { peer, response, .. } = self.get(path).response().await?;
        Ok(Download { peer, body: response.into_body(), what })
    }

    /// Fetches a blob into a writer, checks its digest and returns its size in bytes. After an error, the caller must
    /// discard what was written.
    pub(super) async fn fetch_blob(
        &self,
        wanted: BlobRequest<'_>,
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64> {
        let BlobRequest { path, what, digest, limit } = wanted;
        let mut download = self.download(path, what).await?;
        let mut hasher = Sha256::new();
        let mut length = 0;
        while let Some(data) = download.next().await? {
            length += data.len() as u64;
            if length > limit {
                let text = format!("{what} {digest} is larger than {limit} bytes");
                return Err(download.peer.protocol(text));
            }
            hasher.update(&data);
            writer.write_all(&data).await.map_err(local)?;
        }
        writer.flush().await.map_err(local)?;
        let got = Digest::from_bytes(hasher.finalize().into());
        match got == *digest {
            true => Ok(length),
            false => Err(download.peer.damaged(what, *digest, got)),
        }
    }

    /// Fetches what a file lacks of a blob, and checks the digest of the whole. Where what the file has is of no use, all of
    /// the blob is fetched, once. After an error, the file keeps what has arrived if a later call may fetch the rest.
    pub(super) async fn fetch_rest(&self, wanted: BlobRequest<'_>, file: &mut PartialFile) -> Result<()> {
        let fetched = async {
            file.settle().await.map_err(local)?;
            if file.length() > 0 {
                match self.fetch_into(&wanted, file).await {
                    Err(error) if is_due_to_beginning(&error) => {
                        let digest = wanted.digest.short();
                        tracing::warn!(%error, %digest, "an interrupted download of a {} begins anew", wanted.what);
                        file.clear().await.map_err(local)?;
                    }
                    fetched => return fetched,
                }
            }
            self.fetch_into(&wanted, file).await
        };
        let fetched = fetched.await;
        if fetched.as_ref().is_err_and(|error| !error.is_temporary()) {
            file.forget();
        }
        fetched
    }

    async fn fetch_into(&self, wanted: &BlobRequest<'_>, file: &mut PartialFile) -> Result<()> {
        let BlobRequest { ref path, what, digest, limit } = *wanted;
        let (mut call, had) = (self.get(path.as_str()), file.length());
        if had > 0 {
            let rest = HeaderValue::try_from(format!("bytes={had}-"));
            call = call.header(header::RANGE, rest.map_err(|error| self.protocol(error.to_string()))?);
        }
        let Received { peer, response, .. } = call.response().await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT if begin_of(response.headers()) != Some(had) => {
                return Err(peer.protocol(format!("the range of the {what} does not begin at {had}")));
            }
            StatusCode::PARTIAL_CONTENT => {}
            // The whole comes.
            _ => file.clear().await.map_err(local)?,
        }
        let mut download = Download { peer, body: response.into_body(), what };
        loop {
            let data = match download.next().await {
                Ok(Some(data)) => data,
                Ok(None) => break,
                // The connection broke behind the last byte.
                Err(_) if file.digest() == *digest => break,
                Err(error) => return Err(error),
            };
            if file.length().saturating_add(data.len() as u64) > limit {
                let text = format!("{what} {digest} is larger than {limit} bytes");
                return Err(download.peer.protocol(text));
            }
            file.append(&data).await.map_err(local)?;
        }
        match file.digest() {
            got if got == *digest => Ok(()),
            got => Err(download.peer.damaged(what, *digest, got)),
        }
    }
}

/// Returns true if a fetch of the rest may have failed because of the bytes before it.
fn is_due_to_beginning(error: &ClientError) -> bool {
    match error {
        ClientError::Damaged { .. } | ClientError::Protocol { .. } => true,
        // The rest begins behind the end.
        ClientError::Refused(refusal) => refusal.code == ErrorCode::BadRequest,
        _ => false,
    }
}

/// Returns the place of the first byte of a partial answer.
fn begin_of(headers: &HeaderMap) -> Option<u64> {
    let range = headers.get(header::CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes ")?.split_once('-')?.0.parse().ok()
}

pub(super) fn local(error: std::io::Error) -> ClientError {
    ClientError::Local(error.to_string())
}
