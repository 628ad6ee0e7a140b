//! The routes of resources: uploads of operators, attachments of applications, and downloads of runners for their
//! units.

mod image;
mod partial;

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use periapt_blobs::{BlobError, Incoming, Spooled};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, ErrorCode, ModelUuid, Refusal, ResourceName, UnitName,
    api::ResourceDetails,
    command::ResourceUploaded,
    resource::{ContentKind, ContentLayers, MAX_RESOURCE_BYTES, ResourceKey},
};
use periapt_model::{Input, Root, UploadedResource, may_know_resource, resource_details, resource_for_unit};
use tokio::task::JoinError;

use crate::{
    api::{
        blob::{self, unavailable, unfinished},
        body::PacedBody,
        caller::RequestCaller,
        connection::Peer,
        failure::HandlerResult,
        find::parsed,
        models::readable,
        query::Query,
        spooled::UploadedBody,
    },
    bounds::Upload,
    check::CheckedArchive,
    state::{BlobKind, Contents, Durable, Resources, StoredContent, Submission},
    writer::Sender,
};

/// The longest time for an upload: the largest content over a line of 5 Mbit/s.
const UPLOAD_WITHIN: Duration = Duration::from_secs(1_800);

pub(crate) async fn upload(
    State(resources): State<Resources>,
    State(submission): State<Submission>,
    who: RequestCaller,
    peer: Peer,
    Path(digest): Path<String>,
    RawQuery(query): RawQuery,
    content: Body,
) -> HandlerResult<Json<ResourceUploaded>> {
    let digest: Digest = parsed(&digest)?;
    match form_of(query.as_deref())? {
        UploadForm::File if is_kept_in_parts(&submission, &digest) => {
            let received = spooled_body(content).spool(&resources.contents, peer, who.user()?).await?;
            keep_in_parts(resources.contents, submission, who, digest, received).await
        }
        UploadForm::File => upload_file(resources.contents, submission, who, peer, digest, content).await,
        UploadForm::Image => {
            let received = spooled_body(content).spool(&resources.contents, peer, who.user()?).await?;
            keep_image(resources, submission, who, digest, received).await
        }
        UploadForm::PartOfImage => {
            let (body, contents) = (spooled_body(content), &resources.contents);
            let received = partial::spool(body, contents, &submission.durable, peer, &who).await?;
            keep_image(resources, submission, who, digest, received).await
        }
    }
}

/// The forms of an upload.
enum UploadForm {
    /// A file.
    File,
    /// An archive with an image.
    Image,
    /// An archive with an image, without layers that are here.
    PartOfImage,
}

/// Returns the form of an upload that a request names.
fn form_of(query: Option<&str>) -> Result<UploadForm, Refusal> {
    let mut query = Query::parse(query)?;
    let kind = query.one::<ContentKind>("kind")?.unwrap_or_default();
    let is_partial = query.flag("partial")?;
    query.end()?;
    match (kind, is_partial) {
        (ContentKind::File, false) => Ok(UploadForm::File),
        (ContentKind::File, true) => Err(Refusal::bad_request("an image alone may be uploaded partially")),
        (ContentKind::OciImage, false) => Ok(UploadForm::Image),
        (ContentKind::OciImage, true) => Ok(UploadForm::PartOfImage),
    }
}

fn spooled_body(content: Body) -> UploadedBody {
    UploadedBody { content, limit: MAX_RESOURCE_BYTES, within: UPLOAD_WITHIN }
}

/// Returns true if a content is registered in parts.
fn is_kept_in_parts(submission: &Submission, digest: &Digest) -> bool {
    let published = submission.durable.current();
    published.root.resource_content(digest).is_some_and(|known| known.parts.is_some())
}

/// Returns the kind of content that a request names.
fn kind_of(query: Option<&str>) -> Result<ContentKind, Refusal> {
    let mut query = Query::parse(query)?;
    let kind = query.one::<ContentKind>("kind")?.unwrap_or_default();
    query.end()?;
    Ok(kind)
}

async fn upload_file(
    contents: Contents,
    submission: Submission,
    who: RequestCaller,
    peer: Peer,
    digest: Digest,
    content: Body,
) -> HandlerResult<Json<ResourceUploaded>> {
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
    let size = kept.await.map_err(failed)??;
    Ok(Json(ResourceUploaded { digest, size }))
}

/// Keeps an image once all of it was read in a helper process.
async fn keep_image(
    Resources { contents, checks }: Resources,
    submission: Submission,
    who: RequestCaller,
    digest: Digest,
    (archive, permit): (Spooled, Upload),
) -> HandlerResult<Json<ResourceUploaded>> {
    if archive.digest() != digest {
        let message = format!("the image's archive has digest {}, not {digest}", archive.digest());
        return Err(Refusal::bad_request(message).into());
    }
    let reader = archive.reader().map_err(|error| unavailable(&error))?;
    let checked = checks.check_image(reader, permit.turn()).await?;
    keep_spooled(contents, submission, who, (archive, permit), Some(checked)).await
}

/// Keeps a content once more that is registered in parts, and was uploaded as a file. A damaged part is replaced.
async fn keep_in_parts(
    contents: Contents,
    submission: Submission,
    who: RequestCaller,
    digest: Digest,
    (content, permit): (Spooled, Upload),
) -> HandlerResult<Json<ResourceUploaded>> {
    if content.digest() != digest {
        let wrong = BlobError::WrongDigest { expected: digest, actual: content.digest() };
        return Err(unfinished(&wrong).into());
    }
    keep_spooled(contents, submission, who, (content, permit), None).await
}

/// Stores and registers a complete upload, with its parts if it has some.
async fn keep_spooled(
    contents: Contents,
    submission: Submission,
    who: RequestCaller,
    (content, permit): (Spooled, Upload),
    checked: Option<CheckedArchive>,
) -> HandlerResult<Json<ResourceUploaded>> {
    let (digest, size) = (content.digest(), content.size());
    // The upload is completed even if the client disconnects.
    let kept = tokio::spawn(async move {
        let kept = image::keep(&contents, &submission, who.sender(), content, checked).await;
        drop(permit);
        kept
    });
    kept.await.map_err(failed)??;
    Ok(Json(ResourceUploaded { digest, size }))
}

fn failed(error: JoinError) -> Refusal {
    Refusal::new(ErrorCode::Internal, format!("storing the resource failed: {error}"))
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
    let input = Input::UploadResource(UploadedResource { digest, size, image: None, parts: None });
    blob::register(contents, submission, who, &[digest], input).await?;
    Ok(size)
}

/// Answers if the content is stored, and was checked to be of the kind. A client then need not upload it.
pub(crate) async fn head(
    State(Resources { contents, .. }): State<Resources>,
    State(durable): State<Durable>,
    who: RequestCaller,
    method: Method,
    Path(digest): Path<String>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let digest: Digest = parsed(&digest)?;
    let kind = kind_of(query.as_deref())?;
    let root = &durable.current().root;
    let may_know = may_know_resource(root, &who.caller, &digest, &|state| who.sees(root, state));
    let is_of_kind = match kind {
        ContentKind::File => true,
        ContentKind::OciImage => root.resource_content(&digest).is_some_and(|known| known.image.is_some()),
    };
    if !may_know || !is_of_kind || !BlobKind::Resource.is_known(root, &digest) {
        return Err(BlobKind::Resource.unknown(&digest).into());
    }
    let stored = StoredContent::of_resource(root, &digest);
    contents.collector.note_request(&digest);
    stored.blobs().iter().for_each(|digest| contents.collector.note_request(digest));
    blob::respond(&contents, &stored, &method, &headers).await
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
    State(Resources { contents, .. }): State<Resources>,
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
    let stored = {
        let root = &durable.current().root;
        let digest = of_runners_unit(root, &who, [agent, model, application, number, resource, digest])?;
        StoredContent::of_resource(root, &digest)
    };
    blob::respond(&contents, &stored, &method, &headers).await
}

/// Answers with the layers in a content, of which the agent may have some.
pub(crate) async fn layers_of_unit(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((agent, model, application, number, resource, digest)): Path<(
        String,
        String,
        String,
        String,
        String,
        String,
    )>,
) -> HandlerResult<Json<ContentLayers>> {
    let root = &durable.current().root;
    let digest = of_runners_unit(root, &who, [agent, model, application, number, resource, digest])?;
    let known = root.resource_content(&digest).ok_or_else(|| BlobKind::Resource.unknown(&digest))?;
    let layers = known.parts.as_ref().map(|parts| parts.layers.clone()).unwrap_or_default();
    Ok(Json(ContentLayers { size: known.size, layers }))
}

/// Returns the digest of a content that a runner may read for its unit, of the names in a path.
fn of_runners_unit(
    root: &Root,
    who: &RequestCaller,
    [agent, model, application, number, resource, digest]: [String; 6],
) -> Result<Digest, Refusal> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = who.runner(&agent, model)?;
    let unit: UnitName = parsed(&format!("{application}/{number}"))?;
    let (name, digest): (ResourceName, Digest) = (parsed(&resource)?, parsed(&digest)?);
    resource_for_unit(root, &caller, &unit, &ResourceKey { name, digest })?;
    Ok(digest)
}
