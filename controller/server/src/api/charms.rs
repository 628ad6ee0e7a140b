//! `/v1/charms`: archives by digest. They never change, so whoever has one never asks again.

use std::{sync::Arc, time::Duration};

use axum::{
    Json,
    body::Body,
    extract::{Path, State},
    response::Response,
};
use bytes::Bytes;
use http::{HeaderMap, Method};
use periapt_host_api::{
    CharmDigest, ErrorCode, Refusal,
    api::MAX_ARCHIVE_BYTES,
    command::{Caller, CharmUploaded},
};
use periapt_model::{Input, UploadedCharm};

use crate::{
    api::{
        blob::{self, Kind, unavailable},
        body,
        caller::Who,
        failure::Answer,
        models::parsed,
    },
    engine::{Engine, UPLOADS},
    writer::Lane,
};

/// How long an upload may take.
const UPLOAD_WITHIN: Duration = Duration::from_secs(300);

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
    let _keeping = engine.charms.keeping().await;
    engine.charms.asked_for(&digest);
    engine.blobs.put(digest, archive).await.map_err(|error| unavailable(&error))?;
    // What the model keeps of it is its metadata.
    let known = engine.commands.submit_one(Lane::Controller, &who, Input::UploadCharm(charm), 0).await;
    if known.is_err() {
        engine.charms.doubt(digest);
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
    engine.charms.asked_for(&digest);
    blob::respond(&engine.blobs, Kind::Charm, &digest, &method, &headers).await
}
