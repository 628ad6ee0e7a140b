//! The routes of actions: operations and their tasks.

use periapt_host_api::{
    action::{OperationDetails, TaskDetails, TaskUpdate},
    charm::ActionMeta,
};
use periapt_model::Right;

use super::{
    operation::{Operation, Route, json, lines},
    query::{OPERATIONS_QUERY, TASK_QUERY},
};
use crate::api::actions;

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/models/{model}/applications/{application}/actions").on(
            Operation::get(
                Right::ReadModel, "actions",
                "The actions that an application's charm declares.",
                json::<std::collections::BTreeMap<String, ActionMeta>>(),
            ),
            actions::of_application,
        ),
        Route::new("/v1/models/{model}/operations").on(
            Operation::get(
                Right::ReadModel, "operations",
                "Operations, the newest first. Tasks come without messages and results, and with the first task's \
                 parameters, up to 1 MiB. A list of more than 16 MiB ends early: `offset` continues it.",
                json::<Vec<OperationDetails>>(),
            )
            .query(OPERATIONS_QUERY),
            actions::operations,
        ),
        Route::new("/v1/models/{model}/operations/{operation}").on(
            Operation::get(
                Right::ReadModel, "operation",
                "An operation with its tasks and up to 1 MiB of their messages and results. `next` continues each \
                 task.",
                json::<OperationDetails>(),
            ),
            actions::operation,
        ),
        Route::new("/v1/models/{model}/operations/{operation}/watch").on(
            Operation::get(
                Right::ReadModel, "watchOperation",
                "The messages of an operation's tasks as they come, and each task when it has ended. The stream \
                 ends with the last task.",
                lines::<TaskUpdate>(),
            ),
            actions::watch,
        ),
        Route::new("/v1/models/{model}/tasks/{task}").on(
            Operation::get(
                Right::ReadModel, "task",
                "A task with a page of its messages and results, the oldest first.",
                json::<TaskDetails>(),
            )
            .query(TASK_QUERY),
            actions::task,
        ),
    ]
}
