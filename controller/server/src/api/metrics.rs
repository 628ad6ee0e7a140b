//! `GET /metrics`: the controller's metrics in Prometheus' text form.

use axum::{
    extract::State,
    response::{IntoResponse as _, Response},
};
use http::header;
use periapt_telemetry::metrics::CONTENT_TYPE;

use crate::{api::failure::HandlerResult, metrics::render, replication::Members, state::Sizes};

pub(crate) async fn expose(
    State(sizes): State<Sizes>,
    State(members): State<Members>,
) -> HandlerResult<Response> {
    sizes.measure().await;
    members.measure();
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], render()).into_response())
}
