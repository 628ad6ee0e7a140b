//! Resources: their content, and the resources of applications.

use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use http::{HeaderValue, Method, header};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, ErrorCode, ModelUuid, UnitName,
    api::{ModelSelector, ResourceDetails},
    command::ResourceUploaded,
    program::MAX_PROGRAM_BYTES,
    resource::{ArchiveLayer, ContentKind, MAX_RESOURCE_BYTES, PartialUpload, ResourceKey},
};
use tokio::io::AsyncWrite;

use super::blob::{BlobRequest, pieces};
use crate::{Client, ClientError, PartialFile, Result};

/// The longest time to send content and check it, the same as the controller's.
const UPLOAD_WITHIN: Duration = Duration::from_secs(1_800);

impl Client {
    /// Returns true if the controller has the content of a resource.
    pub async fn has_resource(&self, digest: &Digest) -> Result<bool> {
        self.has_content(digest, ContentKind::File).await
    }

    /// Returns true if the controller has content that it has checked to be of a kind.
    pub async fn has_content(&self, digest: &Digest, kind: ContentKind) -> Result<bool> {
        match self.call(Method::HEAD, content_path(digest)).query("kind", kind.as_str()).response().await {
            Ok(_) => Ok(true),
            Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Uploads the content of a resource as it is read, from its beginning at each attempt. The controller checks the
    /// digest, and stores nothing if it differs.
    pub async fn upload_resource<S>(
        &self,
        digest: &Digest,
        content: impl Fn() -> S + Send + Sync,
    ) -> Result<ResourceUploaded>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        self.upload_content(digest, ContentKind::File, content).await
    }

    /// Uploads content as [`upload_resource`](Self::upload_resource) does. The controller checks that it is of a kind.
    pub async fn upload_content<S>(
        &self,
        digest: &Digest,
        kind: ContentKind,
        content: impl Fn() -> S + Send + Sync,
    ) -> Result<ResourceUploaded>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let bytes = HeaderValue::from_static("application/octet-stream");
        let call = self.call(Method::PUT, content_path(digest)).query("kind", kind.as_str());
        let call = call.header(header::CONTENT_TYPE, bytes);
        self.uploaded(call.content(pieces(content)).upload(UPLOAD_WITHIN).await?).await
    }

    /// Uploads the archive of an image without layers that the controller has. `rest` are the archive's other bytes. The
    /// controller puts all of it together, checks the digest, and stores nothing if it differs.
    ///
    /// # Errors
    /// [`ErrorCode::NotFound`] if the controller has a layer no more: the whole archive is to be uploaded then.
    pub async fn upload_partial_image<S>(
        &self,
        digest: &Digest,
        left_out: Vec<ArchiveLayer>,
        rest: impl Fn() -> S + Send + Sync,
    ) -> Result<ResourceUploaded>
    where
        S: Stream<Item = std::io::Result<Bytes>> + Send + 'static,
    {
        let mut head = serde_json::to_vec(&PartialUpload { left_out })
            .map_err(|error| self.protocol(format!("the request cannot be written: {error}")))?;
        head.push(b'\n');
        let head = Bytes::from(head);
        let bytes = HeaderValue::from_static("application/octet-stream");
        let call = self.call(Method::PUT, content_path(digest));
        let call = call.query("kind", ContentKind::OciImage.as_str()).query("partial", true);
        let content = || stream::iter([Ok(head.clone())]).chain(rest());
        let call = call.header(header::CONTENT_TYPE, bytes).content(pieces(content));
        self.uploaded(call.upload(UPLOAD_WITHIN).await?).await
    }

    /// Returns the resources that an application's charm declares, with their attached content.
    pub async fn resources(
        &self,
        model: &ModelSelector,
        application: &ApplicationName,
    ) -> Result<Vec<ResourceDetails>> {
        self.get(format!("/v1/models/{model:#}/applications/{application}/resources")).value().await
    }

    /// Fetches what a file lacks of the content of a resource of a unit's application, and checks the digest of the whole.
    /// After an error, the file keeps what has arrived if a later call may fetch the rest.
    pub async fn fetch_unit_resource(
        &self,
        agent: &AgentName,
        model: &ModelUuid,
        unit: &UnitName,
        key: &ResourceKey,
        file: &mut PartialFile,
    ) -> Result<()> {
        let path = unit_resource_path(agent, model, unit, key);
        let wanted = BlobRequest { path, what: "resource", digest: &key.digest, limit: MAX_RESOURCE_BYTES };
        self.fetch_rest(wanted, file).await
    }

    /// Fetches the program that an agent is to run into a writer, checks its digest and returns its size in bytes. After an
    /// error, the caller must discard what was written.
    pub async fn fetch_program(
        &self,
        agent: &AgentName,
        digest: &Digest,
        writer: &mut (impl AsyncWrite + Unpin + Send),
    ) -> Result<u64> {
        let path = format!("/v1/agents/{agent}/programs/{digest}");
        self.fetch_blob(BlobRequest { path, what: "program", digest, limit: MAX_PROGRAM_BYTES }, writer).await
    }
}

/// Returns the path of the content of a resource of a unit's application.
pub(super) fn unit_resource_path(
    agent: &AgentName,
    model: &ModelUuid,
    unit: &UnitName,
    ResourceKey { name, digest }: &ResourceKey,
) -> String {
    format!("/v1/agents/{agent}/models/{model}/units/{unit}/resources/{name}/{digest}")
}

fn content_path(digest: &Digest) -> String {
    format!("/v1/resources/{digest}")
}
