//! Bodies in and out.

use std::time::Duration;

use axum::{
    body::{Body, to_bytes},
    http::{HeaderValue, StatusCode, header::CONTENT_TYPE},
    response::Response,
};
use periapt_pebble::{PodAnswer, PodRefusal};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

/// The most bytes of a body in JSON: a layer of the largest size, with every character escaped.
const MAX_BODY: usize = 8 << 20;

/// The type of metrics.
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The time in which a client sends such a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads a body in JSON.
pub(super) async fn read_json<T: DeserializeOwned>(body: Body) -> Result<T, PodRefusal> {
    let bytes = timeout(BODY_TIMEOUT, to_bytes(body, MAX_BODY)).await;
    let bytes = bytes.map_err(|_| PodRefusal {
        status: 408,
        kind: None,
        message: "the body did not arrive".to_owned(),
    })?;
    let bytes = bytes.map_err(|error| PodRefusal::bad(format!("cannot read the request body: {error}")))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| PodRefusal::bad(format!("cannot decode request body: {error}")))
}

/// Returns the response for an answer.
pub(super) fn answered(result: Result<PodAnswer, PodRefusal>) -> Response {
    match result {
        Ok(PodAnswer::Sync(result)) => sync(200, result),
        Ok(PodAnswer::Health(is_healthy)) => {
            sync(if is_healthy { 200 } else { 502 }, json!({ "healthy": is_healthy }))
        }
        Ok(PodAnswer::Async(change, result)) => {
            let (code, status) = status(202);
            let change = change.to_string();
            let body = json!({ "type": "async", "status-code": code.as_u16(), "status": status, "change": change, "result": result });
            respond(code, &body)
        }
        Ok(PodAnswer::Metrics(text)) => {
            let mut response = Response::new(Body::from(text));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(METRICS));
            response
        }
        // Handlers take these before.
        Ok(PodAnswer::Websocket(_) | PodAnswer::Logs(..)) => sync(200, Value::Null),
        Err(refusal) => refused(refusal),
    }
}

/// Returns a response with a result.
pub(super) fn sync(code: u16, result: Value) -> Response {
    let (code, status) = status(code);
    respond(
        code,
        &json!({ "type": "sync", "status-code": code.as_u16(), "status": status, "result": result }),
    )
}

/// Returns the response of a refusal.
pub(super) fn refused(refusal: PodRefusal) -> Response {
    let PodRefusal { status: code, kind, message } = refusal;
    let (code, status) = status(code);
    let mut result = json!({ "message": message });
    if let (Some(kind), Some(result)) = (kind, result.as_object_mut()) {
        result.insert("kind".to_owned(), kind.into());
    }
    respond(
        code,
        &json!({ "type": "error", "status-code": code.as_u16(), "status": status, "result": result }),
    )
}

fn status(code: u16) -> (StatusCode, &'static str) {
    let code = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (code, code.canonical_reason().unwrap_or_default())
}

fn respond(code: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
