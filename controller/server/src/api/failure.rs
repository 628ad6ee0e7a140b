//! The responses for refusals.

use axum::{
    body::{Body, to_bytes},
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use periapt_host_api::{ErrorCode, Refusal, problem::Problem};

/// The media type of RFC 9457.
pub(crate) const PROBLEM: &str = "application/problem+json";
/// The seconds after which a client may try again. Most reasons for being busy are shorter.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");
/// The most bytes that are read from a framework's own error text.
const MAX_TEXT: usize = 1024;

/// A refusal as the error of a handler.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Refusal);

/// The result of a handler.
pub(crate) type HandlerResult<T> = Result<T, Failure>;

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

/// Returns the response for a problem. Its status may be more specific than its code.
pub(crate) fn problem(problem: Problem) -> Response {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // The type has no map with keys that are not text, so it can be serialized.
    let body = serde_json::to_vec(&problem).unwrap_or_default();
    let mut response = (status, body).into_response();
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
    if matches!(problem.code, ErrorCode::TooManyRequests | ErrorCode::TryAgain) {
        response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER);
    }
    response
}

/// Gives the framework's own errors (unknown paths, wrong methods) the form of all others.
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
        _ => "the request is invalid".to_owned(),
    }
}
