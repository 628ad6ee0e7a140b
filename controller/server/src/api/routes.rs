//! The table of all routes. The router and the OpenAPI document are made from it.

mod operation;
mod query;

use std::{collections::HashMap, sync::Arc};

use axum::Router;
use http::Method;
use periapt_host_api::{
    action::{OperationDetails, TaskDetails, TaskNews},
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::{
        ApplicationDetails, Journal, ModelConfigDetails, ModelDefaults, Registered, ResourceDetails,
        SecretDetails, SpaceList, UnitDetails,
    },
    audit::AuditPage,
    charm::ActionMeta,
    cloud::Kept,
    command::{
        AgentSummary, Answer, CharmUploaded, Command, CommandResults, Commands, ControllerCommand,
        ControllerInfo, ModelSummary, ResourceUploaded,
    },
    constraints::Constraints,
    logs::LogLine,
    offer::OfferDetails,
    refresh::RefreshPlan,
    secret::SecretData,
    ssh_key::SshKey,
    status::{CombinedStorage, FullStatus, MachineStatus, StatusHistory},
    usage::ModelUsage,
    user::{
        IssuedRegistration, IssuedSession, ModelUser, NewApiToken, NewPassword, NewUser, PasswordLogin,
        SessionDetails, UseRegistration, UserDetails,
    },
    view::FrameLine,
};
use periapt_model::Right;
use periapt_telemetry::metrics::CONTENT_TYPE;

pub(crate) use self::operation::{Content, Operation, Parameter, Route};
use self::{
    operation::{json, lines},
    query::{
        AUDIT_QUERY, JOURNAL_QUERY, LOG_QUERY, OFFERS_QUERY, OPERATIONS_QUERY, REFRESH_QUERY, SECRETS_QUERY,
        STATUS_HISTORY_QUERY, TASK_QUERY, WATCH_QUERY,
    },
};
use crate::{
    api::{
        actions,
        admission::{Admission, admit},
        agents, audit, charms, controller, failure,
        guard::Guards,
        metrics, models, offers, records, resources, secrets, sessions, trace, users,
    },
    state::ControllerState,
};

/// Returns all routes of the API.
pub(crate) fn table() -> Vec<Route> {
    let mut table = for_controller();
    table.extend(for_models());
    table.extend(for_actions());
    table.extend(for_charms());
    table.extend(for_resources());
    table.extend(for_agents());
    table.extend(for_users());
    table
}

fn for_controller() -> Vec<Route> {
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
            .request(json::<Commands<ControllerCommand>>()),
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
                json::<Kept>(),
            ),
            controller::kept,
        ),
        Route::new("/v1/agents").on(
            Operation::get(Right::List, "agents", "All agents.", json::<Vec<AgentSummary>>()),
            controller::agents,
        ),
    ]
}

fn for_models() -> Vec<Route> {
    vec![
        Route::new("/v1/models")
            .on(Operation::get(Right::List, "models", "All models.", json::<Vec<ModelSummary>>()), models::list),
        Route::new("/v1/models/{model}")
            .on(Operation::get(Right::ReadModel, "model", "One model.", json::<ModelSummary>()), models::one),
        Route::new("/v1/models/{model}/commands").on(
            Operation::new(
                Right::ReadModel, Method::POST,
                "commands",
                "Commands to a model. Each has its own result, and a refused command does not stop the rest.",
                json::<CommandResults<Answer>>(),
            )
            .request(json::<Commands<Command>>()),
            models::commands,
        ),
        Route::new("/v1/models/{model}/status")
            .on(Operation::get(Right::ReadModel, "status", "A model's status.", json::<FullStatus>()), models::status),
        Route::new("/v1/models/{model}/status/watch").on(
            Operation::get(
                Right::ReadModel, "watchStatus",
                "A model's status now, and again after each change. A slow reader gets only the newest.",
                lines::<FullStatus>(),
            ),
            models::watch_status,
        ),
        Route::new("/v1/models/{model}/units/{application}/{number}").on(
            Operation::get(Right::ReadModel, "unit", "A unit with its relations and newest hooks.", json::<UnitDetails>()),
            models::unit,
        ),
        Route::new("/v1/models/{model}/applications/{application}").on(
            Operation::get(Right::ReadModel, "application", "An application and its settings.", json::<ApplicationDetails>()),
            models::application,
        ),
        Route::new("/v1/models/{model}/applications/{application}/refresh").on(
            Operation::get(
                Right::ReadModel, "refreshPlan",
                "The changes that a refresh to an uploaded charm would make, and the reasons that prevent it.",
                json::<RefreshPlan>(),
            )
            .query(REFRESH_QUERY),
            models::refresh_plan,
        ),
        Route::new("/v1/models/{model}/machines").on(
            Operation::get(
                Right::ReadModel, "machines",
                "A model's machines, by number.",
                json::<std::collections::BTreeMap<String, MachineStatus>>(),
            ),
            models::machines,
        ),
        Route::new("/v1/models/{model}/storage").on(
            Operation::get(Right::ReadModel, "storage", "A model's storage, by id.", json::<CombinedStorage>()),
            models::storage,
        ),
        Route::new("/v1/models/{model}/secrets").on(
            Operation::get(
                Right::ReadModel, "secrets",
                "A model's secrets, or one of them. `reveal` adds the content of one secret.",
                json::<Vec<SecretDetails>>(),
            )
            .query(SECRETS_QUERY),
            secrets::list,
        ),
        Route::new("/v1/models/{model}/config").on(
            Operation::get(Right::ReadModel, "modelConfig", "A model's configuration, and where it comes from.", json::<ModelConfigDetails>()),
            models::config,
        ),
        Route::new("/v1/models/{model}/constraints").on(
            Operation::get(
                Right::ReadModel, "modelConstraints",
                "The constraints of applications that set none: the agents that take their units, and the memory \
                 of their hooks.",
                json::<Constraints>(),
            ),
            models::constraints,
        ),
        Route::new("/v1/models/{model}/usage").on(
            Operation::get(Right::ReadModel, "usage", "The resources that a model's units have used, removed units included.", json::<ModelUsage>()),
            models::usage,
        ),
        Route::new("/v1/models/{model}/ssh-keys").on(
            Operation::get(
                Right::ReadModel, "sshKeys",
                "Public SSH keys. The controller keeps them for Juju's clients; they have no effect.",
                json::<Vec<SshKey>>(),
            ),
            models::ssh_keys,
        ),
        Route::new("/v1/models/{model}/users").on(
            Operation::get(
                Right::ReadModel,
                "modelUsers",
                "The users with access to a model; others than its administrators see themselves alone.",
                json::<Vec<ModelUser>>(),
            ),
            models::users,
        ),
        Route::new("/v1/models/{model}/spaces").on(
            Operation::get(Right::ReadModel, "spaces", "A model's spaces with their subnets.", json::<SpaceList>()),
            models::spaces,
        ),
        Route::new("/v1/models/{model}/offers").on(
            Operation::get(
                Right::ReadModel, "modelOffers",
                "A model's offers, with their relations to other models.",
                json::<Vec<OfferDetails>>(),
            ),
            offers::of_model,
        ),
        Route::new("/v1/models/{model}/logs").on(
            Operation::get(Right::ReadModel, "logs", "Log lines, the oldest first.", lines::<LogLine>()).query(LOG_QUERY),
            records::logs,
        ),
        Route::new("/v1/models/{model}/journal").on(
            Operation::get(Right::ReadModel, "journal", "A page of hook runs: units by name, each unit's newest run first.", json::<Journal>())
                .query(JOURNAL_QUERY),
            records::journal,
        ),
        Route::new("/v1/models/{model}/status-history").on(
            Operation::get(
                Right::ReadModel, "statusHistory",
                "The status history of a unit, an application or a machine, the oldest status first.",
                json::<StatusHistory>(),
            )
            .query(STATUS_HISTORY_QUERY),
            records::status_history,
        ),
    ]
}

fn for_actions() -> Vec<Route> {
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
                lines::<TaskNews>(),
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

fn for_charms() -> Vec<Route> {
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

fn for_resources() -> Vec<Route> {
    vec![
        Route::new("/v1/resources/{digest}")
            .on(
                Operation::new(
                    Right::Upload, Method::PUT,
                    "uploadResource",
                    "Uploads the content of a resource. The controller keeps it if it has this digest; a command attaches it.",
                    json::<ResourceUploaded>(),
                )
                .request(Content::Bytes),
                resources::upload,
            )
            .on(
                Operation::new(
                    Right::Upload, Method::HEAD,
                    "resourceHead",
                    "Tells whether the controller has the content.",
                    Content::Empty,
                ),
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
    ]
}

fn for_agents() -> Vec<Route> {
    vec![
        Route::new("/v1/agents/{agent}").on(
            Operation::new(
                Right::ActAsAgent, Method::PUT,
                "register",
                "Registers an agent with its name and addresses.",
                json::<Registered>(),
            )
            .request(json::<Register>()),
            agents::register,
        ),
        Route::new("/v1/agents/{agent}/assignments").on(
            Operation::get(
                Right::ActAsAgent, "assignments",
                "The models with units on an agent now, and again after each change.",
                lines::<AgentAssignments>(),
            ),
            agents::assignments,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/watch").on(
            Operation::get(
                Right::ActAsRunner, "watch",
                "The frames of a runner's view from a position on. A large frame has several lines; an empty frame is the heartbeat.",
                lines::<FrameLine>(),
            )
            .query(WATCH_QUERY),
            agents::watch,
        ),
        Route::new(
            "/v1/agents/{agent}/models/{uuid}/units/{application}/{number}/secrets/{secret}/{revision}",
        )
        .on(
            Operation::get(Right::ActAsRunner, "unitSecret", "Content of a secret that a unit may read.", json::<SecretData>()),
            secrets::of_unit,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/commands").on(
            Operation::new(
                Right::ActAsRunner, Method::POST,
                "runnerCommands",
                "Calls of a runner: attachment, commits, early effects, leadership.",
                json::<CommandResults<RunnerAnswer>>(),
            )
            .request(json::<Commands<RunnerCommand>>()),
            agents::commands,
        ),
    ]
}

fn for_users() -> Vec<Route> {
    vec![
        Route::new("/v1/login").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "logIn",
                "Opens a session by a password.",
                json::<IssuedSession>(),
            )
            .request(json::<PasswordLogin>()),
            sessions::log_in,
        ),
        Route::new("/v1/register").on(
            Operation::new(
                Right::LogIn,
                Method::POST,
                "registerUser",
                "Sets a user's password by a registration token, once, and opens a session.",
                json::<IssuedSession>(),
            )
            .request(json::<UseRegistration>()),
            sessions::register,
        ),
        Route::new("/v1/logout").on(
            Operation::new(
                Right::ReadOneself,
                Method::POST,
                "logOut",
                "Ends the session of the request.",
                json::<Answer>(),
            ),
            sessions::log_out,
        ),
        Route::new("/v1/whoami").on(
            Operation::get(Right::ReadOneself, "whoami", "The user of the request.", json::<UserDetails>()),
            sessions::whoami,
        ),
        Route::new("/v1/sessions").on(
            Operation::new(
                Right::OpenOwnSession,
                Method::POST,
                "openSession",
                "Opens a session for the operator on the controller's own host.",
                json::<IssuedSession>(),
            ),
            sessions::open,
        ),
        Route::new("/v1/tokens").on(
            Operation::new(
                Right::OpenOwnSession,
                Method::POST,
                "makeToken",
                "Makes an API token of the user of the request.",
                json::<IssuedSession>(),
            )
            .request(json::<NewApiToken>()),
            sessions::make_token,
        ),
        Route::new("/v1/audit").on(
            Operation::get(
                Right::ReadAudit,
                "audit",
                "A page of the audit log, the oldest entry first.",
                json::<AuditPage>(),
            )
            .query(AUDIT_QUERY),
            audit::page,
        ),
        Route::new("/v1/users")
            .on(
                Operation::get(
                    Right::List,
                    "users",
                    "The users that the caller may see.",
                    json::<Vec<UserDetails>>(),
                ),
                users::list,
            )
            .on(
                Operation::new(
                    Right::ManageUsers,
                    Method::POST,
                    "addUser",
                    "Makes a user, and returns the token by which the user registers.",
                    json::<IssuedRegistration>(),
                )
                .request(json::<NewUser>()),
                users::add,
            ),
        Route::new("/v1/users/{user}")
            .on(Operation::get(Right::ReadUser, "user", "One user.", json::<UserDetails>()), users::one),
        Route::new("/v1/users/{user}/sessions").on(
            Operation::get(
                Right::ReadUser,
                "sessions",
                "The sessions and API tokens of a user, the newest first.",
                json::<Vec<SessionDetails>>(),
            ),
            users::sessions,
        ),
        Route::new("/v1/users/{user}/password").on(
            Operation::new(
                Right::ManageSessions,
                Method::PUT,
                "setPassword",
                "Sets a user's password. The user's other sessions end.",
                json::<Answer>(),
            )
            .request(json::<NewPassword>()),
            users::set_password,
        ),
        Route::new("/v1/users/{user}/registration").on(
            Operation::new(
                Right::ManageUsers,
                Method::POST,
                "resetPassword",
                "Takes a user's password away, and returns the token by which the user sets another one.",
                json::<IssuedRegistration>(),
            ),
            users::reset,
        ),
    ]
}

/// Returns the service that answers requests.
pub(crate) fn router(state: ControllerState, guards: Guards) -> Router {
    let (durable, clock) = (state.durable.clone(), state.clock.clone());
    let mut rights: HashMap<&'static str, Vec<(Method, Right)>> = HashMap::new();
    let mut router = Router::new();
    for route in table() {
        let offered = route.operations.iter().map(|operation| (operation.method.clone(), operation.right));
        rights.insert(route.path, offered.collect());
        router = router.route(route.path, route.handlers);
    }
    let admission = Admission { rights: Arc::new(rights), durable, clock, guards };
    router
        .route_layer(axum::middleware::from_fn_with_state(admission, admit))
        .layer(axum::middleware::map_response(failure::unify))
        .layer(axum::middleware::from_fn(trace::request))
        .with_state(state)
}
