//! The download of backups.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt as _;
use periapt_host_api::backup::BackupRequest;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

use crate::{Client, ClientError, RequestOutcome, Result, error::chain, request::Received};

/// The longest time for the copy of the store, before the answer begins.
const COPIED_WITHIN: Duration = Duration::from_secs(600);

/// The longest pause in the download.
const PROGRESS_WITHIN: Duration = Duration::from_secs(60);

impl Client {
    /// Writes a backup of the controller into a writer, and tells `advance` the bytes of each piece. The caller checks that
    /// what was written is whole, and discards it after an error.
    pub async fn back_up(
        &self,
        request: &BackupRequest,
        writer: &mut (impl AsyncWrite + Unpin + Send),
        advance: impl Fn(u64),
    ) -> Result<()> {
        let call = self.call(Method::POST, "/v1/backup").json(request)?;
        let Received { peer, response, .. } = call.upload(COPIED_WITHIN).await?;
        let mut body = response.into_body();
        let broken = |reason: String| peer.unreachable(reason, RequestOutcome::NothingHappened);
        loop {
            let next = tokio::time::timeout(PROGRESS_WITHIN, body.frame()).await;
            let next = next.map_err(|_| broken("the download of the backup stalled".to_owned()))?;
            let Some(frame) = next else { break };
            let Ok(data) = frame.map_err(|error| broken(chain(&error)))?.into_data() else { continue };
            writer.write_all(&data).await.map_err(|error| ClientError::Local(error.to_string()))?;
            advance(data.len() as u64);
        }
        writer.flush().await.map_err(|error| ClientError::Local(error.to_string()))
    }
}
