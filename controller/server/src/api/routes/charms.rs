//! The routes of charms.

use http::Method;
use periapt_host_api::command::CharmUploaded;
use periapt_model::Right;

use super::operation::{Content, Operation, Route, json};
use crate::api::charms;

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/charms/{digest}")
            .on(
                Operation::new(
                    Right::Upload,
                    Method::PUT,
                    "uploadCharm",
                    "Uploads a charm archive. The controller keeps it if it has this digest and can run.",
                    json::<CharmUploaded>(),
                )
                .request(Content::Archive),
                charms::upload,
            )
            .on(
                Operation::get(
                    Right::FetchCharm,
                    "charm",
                    "A charm archive, or a range of it. The content of a digest never changes.",
                    Content::Archive,
                ),
                charms::download,
            )
            .on(
                Operation::new(
                    Right::FetchCharm,
                    Method::HEAD,
                    "charmHead",
                    "Tells whether the controller has the archive.",
                    Content::Empty,
                ),
                charms::download,
            ),
    ]
}
