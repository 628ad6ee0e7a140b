//! The routes `/v1/charms`: archives by digest. An archive never changes, so a client with a copy never asks again.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    response::Response,
};
use http::{HeaderMap, Method};
use periapt_blobs::Spooled;
use periapt_host_api::{Digest, ErrorCode, Refusal, api::MAX_ARCHIVE_BYTES, command::CharmUploaded};
use periapt_model::{
    Input, UploadedCharm,
    entity::{Charm, MetaReader},
    may_fetch_charm,
};

use crate::{
    api::{
        blob::{self, unavailable},
        caller::RequestCaller,
        connection::Peer,
        failure::HandlerResult,
        find::parsed,
        spooled::UploadedBody,
    },
    check::Checked,
    state::{BlobKind, Charms, Contents, Durable, StoredContent, Submission},
    writer::Sender,
};

/// The longest time for an upload.
const UPLOAD_WITHIN: Duration = Duration::from_secs(300);

pub(crate) async fn upload(
    State(charms): State<Charms>,
    State(durable): State<Durable>,
    State(submission): State<Submission>,
    who: RequestCaller,
    peer: Peer,
    Path(digest): Path<String>,
    content: Body,
) -> HandlerResult<Json<CharmUploaded>> {
    let digest: Digest = parsed(&digest)?;
    let body = UploadedBody { content, limit: MAX_ARCHIVE_BYTES, within: UPLOAD_WITHIN };
    let (archive, permit) = body.spool(&charms.contents, peer, who.user()?).await?;
    if archive.digest() != digest {
        let message = format!("the archive has digest {}, not {digest}", archive.digest());
        return Err(Refusal::bad_request(message).into());
    }
    let Checked { component, meta } = match known(&durable, &digest) {
        Some(known) => known,
        None => {
            let reader = archive.reader().map_err(|error| unavailable(&error))?;
            charms.checks.check(reader, permit.turn()).await?
        }
    };
    let (size, reader) = (archive.size(), MetaReader::NEWEST);
    let charm = UploadedCharm { digest, component, meta: meta.clone(), size, reader };
    // The upload is completed even if the client disconnects.
    let kept = tokio::spawn(async move {
        let kept = keep(&charms.contents, &submission, who.sender(), archive, charm).await;
        drop(permit);
        kept
    });
    kept.await
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("storing the charm failed: {error}")))??;
    Ok(Json(CharmUploaded { digest, meta }))
}

/// Returns the result of the check of the same archive at an earlier upload; none if an earlier program made it, which may
/// have kept less of the metadata.
fn known(durable: &Durable, digest: &Digest) -> Option<Checked> {
    let published = durable.current();
    let charm = published.root.charm(digest).filter(|charm| is_read_as_today(charm))?;
    Some(Checked { component: charm.component, meta: charm.meta.clone() })
}

fn is_read_as_today(charm: &Charm) -> bool {
    charm.reader >= MetaReader::NEWEST
}

/// Stores an archive, then registers its charm, so that every registered charm has its archive.
async fn keep(
    contents: &Contents,
    submission: &Submission,
    who: Sender,
    archive: Spooled,
    charm: UploadedCharm,
) -> Result<(), Refusal> {
    let digest = charm.digest;
    let keeping = contents.collector.lock_for_upload().await;
    contents.collector.note_request(&digest);
    contents.blobs.put_spooled(archive).await.map_err(|error| unavailable(&error))?;
    drop(keeping);
    blob::register(contents, submission, who, &[digest], Input::UploadCharm(charm)).await
}

pub(crate) async fn download(
    State(Charms { contents, .. }): State<Charms>,
    State(durable): State<Durable>,
    who: RequestCaller,
    method: Method,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let digest: Digest = parsed(&digest)?;
    let root = &durable.current().root;
    let may_fetch = may_fetch_charm(root, &who.caller, &digest, &|state| who.sees(root, state));
    // A client that is told that the controller has an archive deploys it without an upload, which would read it again.
    let is_to_be_read = method == Method::HEAD && !root.charm(&digest).is_some_and(is_read_as_today);
    if !may_fetch || is_to_be_read || !BlobKind::Charm.is_known(root, &digest) {
        return Err(BlobKind::Charm.unknown(&digest).into());
    }
    contents.collector.note_request(&digest);
    blob::respond(&contents, &StoredContent::blob(digest), &method, &headers).await
}
