//! `/v1/charms`: archives by digest. They never change, so whoever has one never asks again.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use periapt_blobs::BlobError;
use periapt_host_api::{
    CharmDigest, ErrorCode, Refusal,
    api::MAX_ARCHIVE_BYTES,
    command::{Caller, CharmUploaded},
    problem::Problem,
};
use periapt_model::{Input, UploadedCharm};

use crate::{
    api::{
        body,
        caller::Who,
        failure::{Answer, Failure, problem},
        models::parsed,
        range::{Wanted, wanted},
    },
    engine::{Engine, UPLOADS},
    writer::Lane,
};

/// How long an upload may take.
const UPLOAD_WITHIN: Duration = Duration::from_secs(300);
/// The content under a digest is the same for ever.
const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

pub(crate) async fn upload(
    State(engine): State<Engine>,
    who: Who,
    Path(digest): Path<String>,
    content: Body,
) -> Answer<Json<CharmUploaded>> {
    let digest: CharmDigest = parsed(&digest)?;
    who.user()?;
    let permit = Arc::clone(&engine.uploads).try_acquire_owned().map_err(|_| {
        let message = format!("{UPLOADS} charms are being uploaded already; try again later");
        Refusal::new(ErrorCode::TooManyRequests, message)
    })?;
    let limit = usize::try_from(MAX_ARCHIVE_BYTES).unwrap_or(usize::MAX);
    let archive = body::steady(content, limit, UPLOAD_WITHIN).await?;
    let bytes = archive.clone();
    let inspected = tokio::task::spawn_blocking(move || periapt_archive::inspect(&bytes))
        .await
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("reading the charm failed: {error}")))?
        .map_err(|error| Refusal::new(ErrorCode::CharmRefused, error.to_string()))?;
    if inspected.digest != digest {
        let message = format!("the archive has digest {}, not {digest}", inspected.digest);
        return Err(Refusal::bad_request(message).into());
    }
    let size = archive.len() as u64;
    let charm = UploadedCharm { digest, component: inspected.component, meta: inspected.meta.clone(), size };
    // Whatever becomes of who asked, what was begun is brought to its end.
    let kept = tokio::spawn(async move {
        let kept = keep(&engine, who.0, archive, charm).await;
        drop(permit);
        kept
    });
    kept.await
        .map_err(|error| Refusal::new(ErrorCode::Internal, format!("keeping the charm failed: {error}")))??;
    Ok(Json(CharmUploaded { digest, meta: inspected.meta }))
}

/// Keeps an archive, and then makes its charm known: what is known is always there.
async fn keep(engine: &Engine, who: Caller, archive: Bytes, charm: UploadedCharm) -> Result<(), Refusal> {
    let digest = charm.digest;
    let _keeping = engine.shelf.keeping().await;
    engine.shelf.asked_for(&digest);
    engine.blobs.put(digest, archive).await.map_err(|error| unavailable(&error))?;
    // What the model keeps of it is its metadata.
    let known = engine.commands.submit_one(Lane::Controller, &who, Input::UploadCharm(charm), 0).await;
    if known.is_err() {
        engine.shelf.doubt(digest);
    }
    known.map(drop)
}

pub(crate) async fn download(
    State(engine): State<Engine>,
    _: Who,
    method: Method,
    Path(digest): Path<String>,
    headers: HeaderMap,
) -> Answer<Response> {
    let digest: CharmDigest = parsed(&digest)?;
    let unknown = || Refusal::not_found(format!("charm {digest} not found"));
    engine.shelf.asked_for(&digest);
    let size = engine.blobs.size(&digest).await.map_err(|error| unavailable(&error))?.ok_or_else(unknown)?;
    let tag = format!("\"{digest}\"");
    if names(&headers, header::IF_NONE_MATCH, &tag) {
        return respond(StatusCode::NOT_MODIFIED, &tag, Body::empty(), &[]);
    }
    // A range of another version is no use: then all of it is sent.
    let may_continue = !headers.contains_key(header::IF_RANGE) || names(&headers, header::IF_RANGE, &tag);
    let asked = headers.get(header::RANGE).filter(|_| may_continue).and_then(|range| range.to_str().ok());
    let (status, range) = match wanted(asked, size) {
        Wanted::Whole => (StatusCode::OK, 0..size),
        Wanted::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        Wanted::Outside => return Ok(outside(size)),
    };
    let mut more = vec![
        (header::CONTENT_LENGTH, (range.end - range.start).to_string()),
        (header::CONTENT_TYPE, "application/zip".to_owned()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        more.push((header::CONTENT_RANGE, format!("bytes {}-{}/{size}", range.start, range.end - 1)));
    }
    let body = match method {
        Method::HEAD => Body::empty(),
        _ => {
            let part = (range != (0..size)).then_some(range);
            let blob = engine.blobs.get(&digest, part).await.map_err(|error| unavailable(&error))?;
            Body::from_stream(blob.ok_or_else(unknown)?.content)
        }
    };
    respond(status, &tag, body, &more)
}

/// Whether a conditional header names the tag of the content, or any.
fn names(headers: &HeaderMap, name: header::HeaderName, tag: &str) -> bool {
    let values = headers.get_all(name);
    let mut tags = values.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    tags.any(|given| matches!(given.trim().trim_start_matches("W/"), given if given == tag || given == "*"))
}

fn respond(
    status: StatusCode,
    tag: &str,
    body: Body,
    more: &[(header::HeaderName, String)],
) -> Answer<Response> {
    let mut response = Response::builder()
        .status(status)
        .header(header::ETAG, tag)
        .header(header::CACHE_CONTROL, FOR_EVER)
        .header(header::ACCEPT_RANGES, "bytes");
    for (name, value) in more {
        response = response.header(name, value);
    }
    response.body(body).map_err(|error| Failure(Refusal::new(ErrorCode::Internal, error.to_string())))
}

fn outside(size: u64) -> Response {
    let refusal = Refusal::bad_request(format!("the range lies outside of the charm's {size} bytes"));
    let status = StatusCode::RANGE_NOT_SATISFIABLE.as_u16();
    let mut response = problem(Problem { status, ..refusal.into() });
    if let Ok(range) = HeaderValue::try_from(format!("bytes */{size}")) {
        response.headers_mut().insert(header::CONTENT_RANGE, range);
    }
    response
}

fn unavailable(error: &BlobError) -> Refusal {
    tracing::error!(%error, "a blob could not be kept or read");
    Refusal::new(ErrorCode::StorageUnavailable, error.to_string())
}
