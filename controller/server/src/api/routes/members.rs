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
        Route::new("/v1/controllers/blobs/{kind}/{digest}")
            .on(
                Operation::get(
                    Right::Work,
                    "copyOfBlob",
                    "A blob that this controller has: a charm's archive or a resource's content.",
                    Content::Bytes,
                ),
                members::copy,
            )
            .on(
                Operation::new(
                    Right::Work,
                    Method::HEAD,
                    "hasCopyOfBlob",
                    "Whether this controller has an intact blob, which it then keeps for now.",
                    Content::Empty,
                ),
                members::copy,
            )
            .on(
                Operation::new(
                    Right::Work,
                    Method::PUT,
                    "keepCopyOfBlob",
                    "Keeps a copy of a blob that another controller of the same log received.",
                    json::<()>(),
                )
                .request(Content::Bytes),
                members::keep_copy,
            ),
        Route::new("/v1/controllers/snapshot").on(
            Operation::get(
                Right::Work,
                "snapshot",
                "The whole state and the end of the log that it was made by. The form belongs to the controllers.",
                Content::Bytes,
            ),
            members::snapshot,
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
