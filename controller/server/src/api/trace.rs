//! The span and the time of each request.

use std::time::Instant;

use axum::{
    extract::{MatchedPath, Request},
    middleware::Next,
    response::Response,
};
use http::StatusCode;
use periapt_host_api::trace::{TRACEPARENT, TraceContext};
use periapt_telemetry::{
    context,
    spans::{REQUEST, number},
};
use tracing::{Instrument as _, field::Empty};

use crate::metrics::metrics;

/// Answers a request in its span, which continues the trace that the caller names. As W3C demands, a header that cannot
/// be read is ignored.
pub(crate) async fn request(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let span = periapt_telemetry::span!(REQUEST, method = request.method().as_str(), route, status = Empty);
    if !span.is_disabled() {
        let named = request.headers().get(TRACEPARENT).and_then(|header| header.to_str().ok());
        let caller: Option<TraceContext> = named.and_then(|header| header.parse().ok());
        context::continue_from(&span, caller.as_ref());
    }
    let response = next.run(request).instrument(span.clone()).await;
    span.record("status", number(response.status().as_u16()));
    metrics().requests.took(&[class(response.status())], began.elapsed());
    response
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() {
        ..200 => "1xx",
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500.. => "5xx",
    }
}
