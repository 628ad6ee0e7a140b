//! Refusals as responses.

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use periapt_host_api::{ErrorCode, Refusal, problem::Problem};

/// The media type of RFC 9457.
pub(crate) const PROBLEM: &str = "application/problem+json";
/// After how many seconds it may be worth another try: what makes the controller busy is mostly shorter.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
/// How much of a framework's own error text is looked at.
const MAX_TEXT: usize = 1024;

/// A refusal on its way to the client.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Refusal);

/// The result of a handler.
pub(crate) type Answer<T> = Result<T, Failure>;

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        problem(self.0.into())
    }
}

/// A problem whose status may say more than its code does.
pub(crate) fn problem(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // The type has no map whose keys are no text, so it can be written.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
    if matches!(problem.code, ErrorCode::TooManyRequests | ErrorCode::TryAgain) {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

/// Gives errors that the framework itself answers (unknown paths, wrong methods) the form of all others.
pub(crate) async fn unify(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    let content_type = response.headers().get(header::CONTENT_TYPE);
    if !is_error || content_type.is_some_and(|kind| kind == PROBLEM) {
        return response;
    }
    let (parts, body) = response.into_parts();
    let text = text_of(body).await;
    let (code, message) = match status {
        StatusCode::NOT_FOUND => (ErrorCode::NotFound, "the API has no such path".to_owned()),
        StatusCode::METHOD_NOT_ALLOWED => {
            (ErrorCode::NotSupported, "the API does not offer this method on this path".to_owned())
        }
        _ if status.is_client_error() => (ErrorCode::BadRequest, text),
        _ => (ErrorCode::Internal, text),
    };
    let mut unified = problem(Problem { status: status.as_u16(), ..Refusal::new(code, message).into() });
    if let Some(allow) = parts.headers.get(header::ALLOW) {
        unified.headers_mut().insert(header::ALLOW, allow.clone());
    }
    unified
}

async fn text_of(body: Body) -> String {
    match to_bytes(body, MAX_TEXT).await {
        Ok(bytes) if !bytes.is_empty() => String::from_utf8_lossy(&bytes).into_owned(),
        _ => "the request cannot be understood".to_owned(),
    }
}
