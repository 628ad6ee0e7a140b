//! The routes of controllers among each other.

use http::Method;
use periapt_host_api::member::{MemberAdmission, MemberJoin, MemberKeys};
use periapt_model::Right;

use super::operation::{Content, Operation, Route, json};
use crate::api::members;

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/controllers/commands").on(
            Operation::new(
                Right::Work,
                Method::POST,
                "forwardCommands",
                "Carries out commands that another controller of the same log received. Their form belongs to the controllers.",
                Content::Bytes,
            )
            .request(Content::Bytes),
            members::commands,
        ),
        Route::new("/v1/controllers/admissions").on(
            Operation::new(
                Right::ManageController,
                Method::POST,
                "admitController",
                "Admits a further controller of the log. This controller alone knows the admission.",
                json::<()>(),
            )
            .request(json::<MemberAdmission>()),
            members::admit,
        ),
        Route::new("/v1/controllers/join").on(
            Operation::new(
                Right::JoinControllers,
                Method::POST,
                "joinControllers",
                "Joins the controllers of a log with a token, over TLS. The request needs no identity.",
                json::<MemberKeys>(),
            )
            .request(json::<MemberJoin>()),
            members::join,
        ),
        Route::new("/v1/controllers/presence").on(
            Operation::new(
                Right::Work,
                Method::POST,
                "reportPresence",
                "Tells the leading controller which agents are connected to another one. The form belongs to the controllers.",
                Content::Bytes,
            )
            .request(Content::Bytes),
            members::presence,
        ),
    ]
}
