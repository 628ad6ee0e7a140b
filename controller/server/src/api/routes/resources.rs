//! The routes of resources.

use http::Method;
use periapt_host_api::{api::ResourceDetails, command::ResourceUploaded, resource::ContentLayers};
use periapt_model::Right;

use super::{
    operation::{Content, Operation, Route, json},
    query::{CONTENT_QUERY, UPLOAD_QUERY},
};
use crate::api::resources;

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/resources/{digest}")
            .on(
                Operation::new(
                    Right::Upload, Method::PUT,
                    "uploadResource",
                    "Uploads the content of a resource. The controller keeps it if it has this digest and is of this kind; a command attaches it.",
                    json::<ResourceUploaded>(),
                )
                .request(Content::Bytes)
                .query(UPLOAD_QUERY),
                resources::upload,
            )
            .on(
                Operation::new(
                    Right::Upload, Method::HEAD,
                    "resourceHead",
                    "Tells whether the controller has the content, of this kind.",
                    Content::Empty,
                )
                .query(CONTENT_QUERY),
                resources::head,
            ),
        Route::new("/v1/models/{model}/applications/{application}/resources").on(
            Operation::get(
                Right::ReadModel, "resources",
                "The resources that an application's charm declares, with their attached revisions.",
                json::<Vec<ResourceDetails>>(),
            ),
            resources::of_application,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/units/{application}/{number}/resources/{resource}/{digest}")
            .on(
                Operation::get(
                    Right::ActAsRunner, "unitResource",
                    "The content of a resource of a unit's application, or a range of it.",
                    Content::Bytes,
                ),
                resources::of_unit,
            ),
        Route::new("/v1/agents/{agent}/models/{uuid}/units/{application}/{number}/resources/{resource}/{digest}/layers")
            .on(
                Operation::get(
                    Right::ActAsRunner, "unitResourceLayers",
                    "The places of layers in the content of a resource of a unit's application. An agent that has some fetches the rest in ranges.",
                    json::<ContentLayers>(),
                ),
                resources::layers_of_unit,
            ),
    ]
}
