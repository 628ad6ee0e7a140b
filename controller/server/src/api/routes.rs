//! Every route of the API, once: router and OpenAPI document are made from this table.

mod operation;
mod query;

use axum::Router;
use http::Method;
use periapt_host_api::{
    action::{OperationDetails, TaskDetails, TaskNews},
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::{
        ApplicationDetails, Journal, ModelConfigDetails, ModelDefaults, Registered, ResourceDetails,
        SecretDetails, SpaceList, UnitDetails,
    },
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
    view::FrameLine,
};

pub(crate) use self::operation::{Content, Operation, Parameter, Route};
use self::{
    operation::{json, lines},
    query::{
        JOURNAL_QUERY, LOG_QUERY, OFFERS_QUERY, OPERATIONS_QUERY, REFRESH_QUERY, SECRETS_QUERY,
        STATUS_HISTORY_QUERY, TASK_QUERY, WATCH_QUERY,
    },
};
use crate::{
    api::{actions, agents, charms, controller, failure, models, offers, records, resources, secrets},
    state::ControllerState,
};

/// The API.
pub(crate) fn table() -> Vec<Route> {
    let mut table = for_controller();
    table.extend(for_models());
    table.extend(for_actions());
    table.extend(for_charms());
    table.extend(for_resources());
    table.extend(for_agents());
    table
}

fn for_controller() -> Vec<Route> {
    vec![
        Route::new("/v1/controller").on(
            Operation::get("controller", "What the controller says of itself.", json::<ControllerInfo>()),
            controller::info,
        ),
        Route::new("/v1/commands").on(
            Operation::new(
                Method::POST,
                "controllerCommands",
                "Commands about no existing model, or about whole ones; each has its own result.",
                json::<CommandResults<Answer>>(),
            )
            .request(json::<Commands<ControllerCommand>>()),
            controller::commands,
        ),
        Route::new("/v1/offers").on(
            Operation::get(
                "offers",
                "What models offer to others, as far as the caller may know of it.",
                json::<Vec<OfferDetails>>(),
            )
            .query(OFFERS_QUERY),
            offers::find,
        ),
        Route::new("/v1/model-defaults").on(
            Operation::get(
                "modelDefaults",
                "What holds in models that do not set it themselves.",
                json::<ModelDefaults>(),
            ),
            controller::model_defaults,
        ),
        Route::new("/v1/kept").on(
            Operation::get(
                "kept",
                "Clouds and credentials, which are kept and have no effect.",
                json::<Kept>(),
            ),
            controller::kept,
        ),
        Route::new("/v1/agents")
            .on(Operation::get("agents", "All agents.", json::<Vec<AgentSummary>>()), controller::agents),
    ]
}

fn for_models() -> Vec<Route> {
    vec![
        Route::new("/v1/models")
            .on(Operation::get("models", "All models.", json::<Vec<ModelSummary>>()), models::list),
        Route::new("/v1/models/{model}")
            .on(Operation::get("model", "One model.", json::<ModelSummary>()), models::one),
        Route::new("/v1/models/{model}/commands").on(
            Operation::new(
                Method::POST,
                "commands",
                "Commands to a model; each has its own result, and one that is refused does not stop the rest.",
                json::<CommandResults<Answer>>(),
            )
            .request(json::<Commands<Command>>()),
            models::commands,
        ),
        Route::new("/v1/models/{model}/status")
            .on(Operation::get("status", "A model's status.", json::<FullStatus>()), models::status),
        Route::new("/v1/models/{model}/status/watch").on(
            Operation::get(
                "watchStatus",
                "A model's status now, and again whenever it differs; a slow reader gets only the newest.",
                lines::<FullStatus>(),
            ),
            models::watch_status,
        ),
        Route::new("/v1/models/{model}/units/{application}/{number}").on(
            Operation::get("unit", "A unit with its relations and newest hooks.", json::<UnitDetails>()),
            models::unit,
        ),
        Route::new("/v1/models/{model}/applications/{application}").on(
            Operation::get("application", "An application and its settings.", json::<ApplicationDetails>()),
            models::application,
        ),
        Route::new("/v1/models/{model}/applications/{application}/refresh").on(
            Operation::get(
                "refreshPlan",
                "What a refresh to an uploaded charm would change, and what is in its way.",
                json::<RefreshPlan>(),
            )
            .query(REFRESH_QUERY),
            models::refresh_plan,
        ),
        Route::new("/v1/models/{model}/machines").on(
            Operation::get(
                "machines",
                "A model's machines, by number.",
                json::<std::collections::BTreeMap<String, MachineStatus>>(),
            ),
            models::machines,
        ),
        Route::new("/v1/models/{model}/storage").on(
            Operation::get("storage", "A model's storage, by id.", json::<CombinedStorage>()),
            models::storage,
        ),
        Route::new("/v1/models/{model}/secrets").on(
            Operation::get(
                "secrets",
                "A model's secrets, or one of them; content only of one, and only where it is asked for.",
                json::<Vec<SecretDetails>>(),
            )
            .query(SECRETS_QUERY),
            secrets::list,
        ),
        Route::new("/v1/models/{model}/config").on(
            Operation::get("modelConfig", "A model's configuration, and where it comes from.", json::<ModelConfigDetails>()),
            models::config,
        ),
        Route::new("/v1/models/{model}/constraints").on(
            Operation::get(
                "modelConstraints",
                "On which agents units are placed of applications that do not say it themselves, and the memory of \
                 their hooks.",
                json::<Constraints>(),
            ),
            models::constraints,
        ),
        Route::new("/v1/models/{model}/usage").on(
            Operation::get("usage", "What a model's units have used, gone ones included.", json::<ModelUsage>()),
            models::usage,
        ),
        Route::new("/v1/models/{model}/ssh-keys").on(
            Operation::get(
                "sshKeys",
                "Public keys of people, which are kept and have no effect.",
                json::<Vec<SshKey>>(),
            ),
            models::ssh_keys,
        ),
        Route::new("/v1/models/{model}/spaces").on(
            Operation::get("spaces", "A model's spaces with their subnets.", json::<SpaceList>()),
            models::spaces,
        ),
        Route::new("/v1/models/{model}/offers").on(
            Operation::get(
                "modelOffers",
                "What a model offers to others, with the relations that they have with it.",
                json::<Vec<OfferDetails>>(),
            ),
            offers::of_model,
        ),
        Route::new("/v1/models/{model}/logs").on(
            Operation::get("logs", "Log lines, the oldest first.", lines::<LogLine>()).query(LOG_QUERY),
            records::logs,
        ),
        Route::new("/v1/models/{model}/journal").on(
            Operation::get("journal", "A page of the newest hooks: units by name, of each the newest hook first.", json::<Journal>())
                .query(JOURNAL_QUERY),
            records::journal,
        ),
        Route::new("/v1/models/{model}/status-history").on(
            Operation::get(
                "statusHistory",
                "What a unit, an application or a machine said of itself, the oldest first.",
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
                "actions",
                "The actions that an application's charm declares.",
                json::<std::collections::BTreeMap<String, ActionMeta>>(),
            ),
            actions::of_application,
        ),
        Route::new("/v1/models/{model}/operations").on(
            Operation::get(
                "operations",
                "Operations, the newest first; their tasks without messages and results, and with the first one's \
                 parameters, up to 1 MiB of them. A list of more than 16 MiB ends early: the offset leads on.",
                json::<Vec<OperationDetails>>(),
            )
            .query(OPERATIONS_QUERY),
            actions::operations,
        ),
        Route::new("/v1/models/{model}/operations/{operation}").on(
            Operation::get(
                "operation",
                "An operation with its tasks; of messages and results there is 1 MiB, and `next` leads to the rest of \
                 each task.",
                json::<OperationDetails>(),
            ),
            actions::operation,
        ),
        Route::new("/v1/models/{model}/operations/{operation}/watch").on(
            Operation::get(
                "watchOperation",
                "The messages of an operation's tasks as they come, and each task when it has ended; ends with \
                 the last.",
                lines::<TaskNews>(),
            ),
            actions::watch,
        ),
        Route::new("/v1/models/{model}/tasks/{task}").on(
            Operation::get(
                "task",
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
                    Method::PUT,
                    "uploadCharm",
                    "Uploads an archive; it is checked, and kept only if it has this digest and can run.",
                    json::<CharmUploaded>(),
                )
                .request(Content::Archive),
                charms::upload,
            )
            .on(
                Operation::get(
                    "charm",
                    "An archive, or a range of it; the content under a digest never changes.",
                    Content::Archive,
                ),
                charms::download,
            )
            .on(
                Operation::new(Method::HEAD, "charmHead", "Whether there is an archive.", Content::Empty),
                charms::download,
            ),
    ]
}

fn for_resources() -> Vec<Route> {
    vec![
        Route::new("/v1/resources/{digest}")
            .on(
                Operation::new(
                    Method::PUT,
                    "uploadResource",
                    "Uploads the content of a resource, kept only if it has this digest; it is then attached by a command.",
                    json::<ResourceUploaded>(),
                )
                .request(Content::Bytes),
                resources::upload,
            )
            .on(
                Operation::new(
                    Method::HEAD,
                    "resourceHead",
                    "Whether there is such content.",
                    Content::Empty,
                ),
                resources::head,
            ),
        Route::new("/v1/models/{model}/applications/{application}/resources").on(
            Operation::get(
                "resources",
                "The resources that an application's charm declares, with what is attached.",
                json::<Vec<ResourceDetails>>(),
            ),
            resources::of_application,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/units/{application}/{number}/resources/{resource}/{digest}")
            .on(
                Operation::get(
                    "unitResource",
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
                Method::PUT,
                "register",
                "An agent says who and where it is.",
                json::<Registered>(),
            )
            .request(json::<Register>()),
            agents::register,
        ),
        Route::new("/v1/agents/{agent}/assignments").on(
            Operation::get(
                "assignments",
                "The models with units on an agent: now, and again whenever they differ.",
                lines::<AgentAssignments>(),
            ),
            agents::assignments,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/watch").on(
            Operation::get(
                "watch",
                "The frames of a runner's view, from a position on, large ones in several lines; one without content is the heartbeat.",
                lines::<FrameLine>(),
            )
            .query(WATCH_QUERY),
            agents::watch,
        ),
        Route::new(
            "/v1/agents/{agent}/models/{uuid}/units/{application}/{number}/secrets/{secret}/{revision}",
        )
        .on(
            Operation::get("unitSecret", "Content of a secret that a unit may read.", json::<SecretData>()),
            secrets::of_unit,
        ),
        Route::new("/v1/agents/{agent}/models/{uuid}/commands").on(
            Operation::new(
                Method::POST,
                "runnerCommands",
                "Calls of a runner: attachment, commits, early effects, leadership.",
                json::<CommandResults<RunnerAnswer>>(),
            )
            .request(json::<Commands<RunnerCommand>>()),
            agents::commands,
        ),
    ]
}

/// The service that answers requests.
pub(crate) fn router(state: ControllerState) -> Router {
    let router =
        table().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.handlers));
    router.layer(axum::middleware::map_response(failure::unify)).with_state(state)
}
