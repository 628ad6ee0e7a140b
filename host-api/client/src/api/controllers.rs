//! The calls of controllers to each other.

use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use http::{HeaderValue, Method, header};
use periapt_host_api::{
    Digest, ErrorCode,
    member::{MemberAdmission, MemberJoin, MemberKeys},
};
use serde::{Serialize, de::DeserializeOwned};

use super::blob::{Download, pieces};
use crate::{Client, ClientError, Result, request::Received};

/// The longest time to give another controller a copy of a blob.
const COPIED_WITHIN: Duration = Duration::from_secs(1_800);

/// Commands that the controller that leads has queued.
pub struct QueuedCommands {
    received: Received,
    within: Duration,
}

impl QueuedCommands {
    /// Waits for the answers to all of them, in order.
    ///
    /// # Errors
    /// Answers that do not come, after which nothing is known of any command.
    pub async fn answers<A: DeserializeOwned>(self) -> Result<A> {
        self.received.value(self.within).await
    }
}

impl Client {
    /// Passes commands on to the controller that leads, and returns once it has queued them: commands that are passed on
    /// later are carried out later. Both sides know the forms. A controller of a release before this one queues and answers
    /// at the same time.
    pub async fn forward_commands(&self, commands: &impl Serialize) -> Result<QueuedCommands> {
        let call = self.call(Method::POST, "/v1/controllers/commands").json(commands)?;
        Ok(QueuedCommands { within: self.options().answer_within, received: call.response().await? })
    }

    /// Tells the controller that leads which agents are connected to another one, and returns what it knows of all.
    pub async fn report_presence<A: DeserializeOwned>(&self, report: &impl Serialize) -> Result<A> {
        self.call(Method::POST, "/v1/controllers/presence").json(report)?.value().await
    }

    /// Returns true if another controller has a blob and keeps it for now. `kind` is `charm` or `resource`.
    pub async fn member_keeps(&self, kind: &'static str, digest: &Digest) -> Result<bool> {
        match self.call(Method::HEAD, copy_path(kind, digest)).response().await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Gives another controller a copy of a blob, which is read from its beginning at each attempt.
    pub async fn give_copy<S>(
        &self,
        kind: &'static str,
        digest: &Digest,
        content: impl Fn() -> S + Send + Sync,
    ) -> Result<()>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let media = HeaderValue::from_static("application/octet-stream");
        let call = self.call(Method::PUT, copy_path(kind, digest)).header(header::CONTENT_TYPE, media);
        self.uploaded(call.content(pieces(content)).upload(COPIED_WITHIN).await?).await
    }

    /// Begins to fetch the copy of a blob that another controller has. The caller checks its digest.
    pub async fn fetch_copy(&self, kind: &'static str, digest: &Digest) -> Result<Download> {
        self.download(copy_path(kind, digest), kind).await
    }

    /// Begins to fetch the whole state of another controller.
    pub async fn fetch_snapshot(&self) -> Result<Download> {
        self.download("/v1/controllers/snapshot".to_owned(), "snapshot").await
    }

    /// Admits a further controller of the log, which joins with a token.
    pub async fn admit_member(&self, admission: &MemberAdmission) -> Result<()> {
        self.call(Method::POST, "/v1/controllers/admissions").json(admission)?.value().await
    }

    /// Joins the controllers of a log, and returns their keys.
    pub async fn join_member(&self, join: &MemberJoin) -> Result<MemberKeys> {
        self.call(Method::POST, "/v1/controllers/join").json(join)?.value().await
    }
}

fn copy_path(kind: &str, digest: &Digest) -> String {
    format!("/v1/controllers/blobs/{kind}/{digest}")
}
