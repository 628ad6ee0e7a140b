//! The route `/v1/backup`.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, HeaderValue, header};
use periapt_host_api::backup::BackupRequest;
use periapt_model::{Input, check_level};

use crate::{
    api::{body, caller::RequestCaller, failure::HandlerResult},
    backup::BackupParts,
    state::Submission,
    writer::QueueKey,
};

/// Answers with a backup. The request has a key, which belongs into no URL: hence `POST`.
///
/// The backup is in the audit log before its first byte leaves: who took all that the controller keeps must be found
/// later.
pub(crate) async fn create(
    who: RequestCaller,
    State(parts): State<BackupParts>,
    State(submission): State<Submission>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Response> {
    let request: BackupRequest = body::value(&submission, &headers, content).await?;
    let taken = Input::Backup { keys: request.keys.is_some() };
    let backup = parts.prepare(request).await?;
    tracing::info!(caller = ?who.caller, address = ?who.address, ?taken, "a backup is sent");
    // Below its level the writer may be a program that does not know the entry.
    if check_level(&submission.durable.current().root, &taken).is_ok() {
        submission.commands.submit_one(QueueKey::Controller, who.sender(), taken, 0).await?;
    }
    let mut response = Response::new(Body::from_stream(backup.into_stream()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}
