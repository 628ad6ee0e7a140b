//! The routes of the controller as a whole.

use http::Method;
use periapt_host_api::{
    api::ModelDefaults,
    backup::BackupRequest,
    cloud::StoredClouds,
    command::{AgentSummary, Answer, CommandResults, Commands, ControllerCommand, ControllerInfo},
    offer::OfferDetails,
};
use periapt_model::Right;
use periapt_telemetry::metrics::CONTENT_TYPE;

use super::{
    operation::{Content, Operation, Route, json},
    query::OFFERS_QUERY,
};
use crate::api::{backup, controller, metrics, offers};

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/controller").on(
            Operation::get(
                Right::ReadController,
                "controller",
                "The controller's version, identity and settings.",
                json::<ControllerInfo>(),
            ),
            controller::info,
        ),
        Route::new("/v1/backup").on(
            Operation::new(
                Right::BackUp,
                Method::POST,
                "createBackup",
                "A backup of the controller, as a tar file. It is whole if its last entry has the digest of all others.",
                Content::Bytes,
            )
            .request(json::<BackupRequest>()),
            backup::create,
        ),
        Route::new("/metrics").on(
            Operation::get(
                Right::ReadMetrics,
                "metrics",
                "The controller's metrics in Prometheus' text form.",
                Content::Text(CONTENT_TYPE),
            ),
            metrics::expose,
        ),
        Route::new("/v1/commands").on(
            Operation::new(
                Right::CommandController,
                Method::POST,
                "controllerCommands",
                "Commands that create models or concern whole ones. Each has its own result.",
                json::<CommandResults<Answer>>(),
            )
            .request(json::<Commands<ControllerCommand>>())
            .once(),
            controller::commands,
        ),
        Route::new("/v1/offers").on(
            Operation::get(
                Right::List,
                "offers",
                "The offers of all models that the caller may see.",
                json::<Vec<OfferDetails>>(),
            )
            .query(OFFERS_QUERY),
            offers::find,
        ),
        Route::new("/v1/model-defaults").on(
            Operation::get(
                Right::ReadDefaults,
                "modelDefaults",
                "The configuration of models that do not set their own.",
                json::<ModelDefaults>(),
            ),
            controller::model_defaults,
        ),
        Route::new("/v1/kept").on(
            Operation::get(
                Right::ReadDefaults,
                "kept",
                "Clouds and credentials. The controller keeps them for Juju's clients; they have no effect.",
                json::<StoredClouds>(),
            ),
            controller::kept,
        ),
        Route::new("/v1/agents").on(
            Operation::get(Right::List, "agents", "All agents.", json::<Vec<AgentSummary>>()),
            controller::agents,
        ),
    ]
}
