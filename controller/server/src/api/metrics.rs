//! `GET /metrics`: the controller's metrics in Prometheus' text form.

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::header;
use periapt_telemetry::metrics::CONTENT_TYPE;

use crate::{api::failure::HandlerResult, metrics::render, state::Sizes};

pub(crate) async fn expose(State(sizes): State<Sizes>) -> HandlerResult<Response> {
    sizes.measure().await;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], render()).into_response())
}
