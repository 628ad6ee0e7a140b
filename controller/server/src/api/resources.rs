//! The routes of resources: uploads of operators, attachments of applications, and downloads of runners for their
//! units.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use periapt_blobs::Incoming;
use periapt_host_api::{
    AgentName, ApplicationName, Digest, ErrorCode, ModelUuid, Refusal, ResourceName, UnitName,
    api::ResourceDetails,
    command::ResourceUploaded,
    resource::{MAX_RESOURCE_BYTES, ResourceKey},
};
use periapt_model::{Input, UploadedResource, may_know_resource, resource_details, resource_for_unit};

use crate::{
    api::{
        blob::{self, unavailable, unfinished},
        body::PacedBody,
        caller::RequestCaller,
        connection::Peer,
        failure::HandlerResult,
        find::parsed,
        models::readable,
    },
    bounds::Upload,
    state::{BlobKind, Contents, Durable, Resources, Submission},
    writer::Sender,
};

/// The longest time for an upload: the largest content over a line of 5 Mbit/s.
const UPLOAD_WITHIN: Duration = Duration::from_secs(1_800);

pub(crate) async fn upload(
    State(Resources { contents }): State<Resources>,
    State(submission): State<Submission>,
    who: RequestCaller,
    peer: Peer,
    Path(digest): Path<String>,
    content: Body,
) -> HandlerResult<Json<ResourceUploaded>> {
    let digest: Digest = parsed(&digest)?;
    let limit = usize::try_from(MAX_RESOURCE_BYTES).unwrap_or(usize::MAX);
    let mut body = PacedBody::new(content, limit, UPLOAD_WITHIN, contents.progress_within);
    let first = body.next().await?;
    let mut permit = contents.uploads.begin(peer.number, who.user()?)?;
    let mut incoming = contents.blobs.begin(digest).await.map_err(|error| unavailable(&error))?;
    if let Err(refusal) = receive(&mut incoming, first, body, &mut permit).await {
        incoming.discard().await;
        return Err(refusal.into());
    }
    // The upload is completed even if the client disconnects.
    let kept = tokio::spawn(async move {
        let kept = keep(&contents, &submission, who.sender(), incoming, digest).await;
        drop(permit);
        kept
    });
    let size = kept.await.map_err(|error| {
        Refusal::new(ErrorCode::Internal, format!("storing the resource failed: {error}"))
    })??;
    Ok(Json(ResourceUploaded { digest, size }))
}

/// Writes a body to the blob store as it arrives. Only a part of it is in memory.
async fn receive(
    incoming: &mut Incoming,
    first: Option<Bytes>,
    mut body: PacedBody,
    permit: &mut Upload,
) -> Result<(), Refusal> {
    let mut next = first;
    while let Some(piece) = next {
        permit.hold(piece.len())?;
        incoming.write(piece).await.map_err(|error| unavailable(&error))?;
        next = body.next().await?;
    }
    Ok(())
}

/// Stores the content if it has the promised digest, then registers it, so that all registered content has its blob.
async fn keep(
    contents: &Contents,
    submission: &Submission,
    who: Sender,
    incoming: Incoming,
    digest: Digest,
) -> Result<u64, Refusal> {
    let keeping = contents.collector.lock_for_upload().await;
    contents.collector.note_request(&digest);
    let size = incoming.finish().await.map_err(|error| unfinished(&error))?;
    drop(keeping);
    let input = Input::UploadResource(UploadedResource { digest, size });
    blob::register(contents, submission, who, digest, input).await?;
    Ok(size)
}

/// Answers if the content is stored. A client then need not upload it.
pub(crate) async fn head(
    State(Resources { contents }): State<Resources>,
    State(durable): State<Durable>,
    who: RequestCaller,
    method: Method,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let digest: Digest = parsed(&digest)?;
    let root = &durable.current().root;
    let may_know = may_know_resource(root, &who.caller, &digest, &|state| who.sees(root, state));
    if !may_know || !BlobKind::Resource.is_known(root, &digest) {
        return Err(BlobKind::Resource.unknown(&digest).into());
    }
    contents.collector.note_request(&digest);
    blob::respond(&contents, &digest, &method, &headers).await
}

pub(crate) async fn of_application(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((model, application)): Path<(String, String)>,
) -> HandlerResult<Json<Vec<ResourceDetails>>> {
    let (published, state) = readable(&durable, &who, &model)?;
    let name: ApplicationName = parsed(&application)?;
    let application = state.application(&name).ok_or_else(|| {
        Refusal::not_found(format!("application {:?} not found", name.as_str()))
            .about(format!("application {name}"))
    })?;
    Ok(Json(resource_details(&published.root, &state, application)))
}

pub(crate) async fn of_unit(
    State(Resources { contents }): State<Resources>,
    State(durable): State<Durable>,
    who: RequestCaller,
    method: Method,
    Path((agent, model, application, number, resource, digest)): Path<(
        String,
        String,
        String,
        String,
        String,
        String,
    )>,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = who.runner(&agent, model)?;
    let unit: UnitName = parsed(&format!("{application}/{number}"))?;
    let (name, digest): (ResourceName, Digest) = (parsed(&resource)?, parsed(&digest)?);
    resource_for_unit(&durable.current().root, &caller, &unit, &ResourceKey { name, digest })?;
    blob::respond(&contents, &digest, &method, &headers).await
}
