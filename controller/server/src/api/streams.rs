//! Streamed bodies: values as lines of JSON. Each is made when the one before was handed over.

use std::{convert::Infallible, error::Error};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http::{HeaderValue, header};
use periapt_host_api::Refusal;
use serde::Serialize;

use crate::bounds::StreamPermit;

/// The media type of a stream of values.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// Returns true for a response of lines.
pub(crate) fn is_stream(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == NDJSON)
}

/// Returns a response of values, one in each line.
pub(crate) fn lines<T: Serialize>(
    permit: StreamPermit,
    values: impl Stream<Item = T> + Send + 'static,
) -> Response {
    encoded(permit, values.map(|value| line(&value).into()))
}

/// Returns a response of grouped lines. An error resets the stream, so that the client does not take the lines before
/// it for all of them.
pub(crate) fn groups<T: Serialize>(
    permit: StreamPermit,
    groups: impl Stream<Item = Result<Vec<T>, Refusal>> + Send + 'static,
) -> Response {
    let encoded = |group: Vec<T>| Bytes::from(group.iter().flat_map(line).collect::<Vec<u8>>());
    parts(permit, groups.map(move |group| group.map(encoded)))
}

/// Returns a response of encoded lines, which may break off anywhere. An error resets the stream.
pub(crate) fn parts(
    permit: StreamPermit,
    parts: impl Stream<Item = Result<Bytes, Refusal>> + Send + 'static,
) -> Response {
    response(permit, parts)
}

/// Returns a response of encoded lines.
pub(crate) fn encoded(permit: StreamPermit, lines: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    response(permit, lines.map(Ok::<_, Infallible>))
}

fn response<E>(permit: StreamPermit, lines: impl Stream<Item = Result<Bytes, E>> + Send + 'static) -> Response
where
    E: Error + Send + Sync + 'static,
{
    let body = Body::from_stream(lines.map(move |line| {
        // The permit is held until the stream is dropped, however it ends.
        let _ = &permit;
        line
    }));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn line<T: Serialize>(value: &T) -> Vec<u8> {
    match serde_json::to_vec(value) {
        Ok(mut bytes) => {
            bytes.push(b'\n');
            bytes
        }
        Err(error) => {
            tracing::error!(%error, "a value of a stream cannot be written");
            Vec::new()
        }
    }
}
