//! The route `/v1/backup`.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, HeaderValue, header};
use periapt_host_api::backup::BackupRequest;

use crate::{
    api::{body, caller::RequestCaller, failure::HandlerResult},
    backup::BackupParts,
    state::Submission,
};

/// Answers with a backup. The request has a key, which belongs into no URL: hence `POST`.
pub(crate) async fn create(
    who: RequestCaller,
    State(parts): State<BackupParts>,
    State(submission): State<Submission>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Response> {
    let request: BackupRequest = body::value(&submission, &headers, content).await?;
    let has_keys = request.keys.is_some();
    let stream = parts.create(request).await?;
    // Who took all that the controller keeps must be found later. The request's key stays out of the log.
    tracing::info!(caller = ?who.caller, address = ?who.address, has_keys, "a backup is sent");
    let mut response = Response::new(Body::from_stream(stream));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
