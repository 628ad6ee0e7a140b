//! The routes of models.

use http::Method;
use periapt_host_api::{
    api::{ApplicationDetails, Journal, ModelConfigDetails, SecretDetails, SpaceList, UnitDetails},
    command::{Answer, Command, CommandResults, Commands, ModelSummary},
    constraints::Constraints,
    exec_session::{ExecSessionInput, ExecSessionOutput},
    logs::LogLine,
    migration::{ImportPlan, MigrationStatus},
    offer::OfferDetails,
    refresh::RefreshPlan,
    ssh_key::SshKey,
    status::{CombinedStorage, FullStatus, MachineStatus, StatusHistory},
    usage::ModelUsage,
    user::ModelUser,
    workload_log::WorkloadLogLine,
};
use periapt_model::Right;

use super::{
    operation::{Operation, Route, json, lines},
    query::{
        JOURNAL_QUERY, LOG_QUERY, REFRESH_QUERY, SECRETS_QUERY, STATUS_HISTORY_QUERY, WORKLOAD_LOG_QUERY,
    },
};
use crate::api::{exec_sessions, models, offers, records, secrets, workload_logs};

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::new("/v1/models")
            .on(Operation::get(Right::List, "models", "All models.", json::<Vec<ModelSummary>>()), models::list),
        Route::new("/v1/models/{model}")
            .on(Operation::get(Right::ReadModel, "model", "One model.", json::<ModelSummary>()), models::one),
        Route::new("/v1/models/{model}/migration").on(
            Operation::get(
                Right::MigrateModels, "migration",
                "The state of a model's migration to another controller, also of a model that has moved.",
                json::<Option<MigrationStatus>>(),
            ),
            models::migration,
        ),
        Route::new("/v1/models/{model}/migration/plan").on(
            Operation::get(
                Right::MigrateModels, "migrationPlan",
                "A model with what another controller must have before the model migrates to it, or the reason why \
                 it cannot.",
                json::<ImportPlan>(),
            ),
            models::migration_plan,
        ),
        Route::new("/v1/models/{model}/commands").on(
            Operation::new(
                Right::ReadModel, Method::POST,
                "commands",
                "Commands to a model. Each has its own result, and a refused command does not stop the rest.",
                json::<CommandResults<Answer>>(),
            )
            .request(json::<Commands<Command>>())
            .once(),
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
        Route::new("/v1/models/{model}/units/{application}/{number}/workload-logs").on(
            Operation::get(
                Right::WriteModel, "workloadLogs",
                "The output of a container's services, from the unit's agent.",
                lines::<WorkloadLogLine>(),
            )
            .query(WORKLOAD_LOG_QUERY),
            workload_logs::of_unit,
        ),
        Route::new("/v1/models/{model}/units/{application}/{number}/exec-sessions").on(
            Operation::new(
                Right::WriteModel, Method::POST,
                "execSession",
                "A dialogue with a command in a container, over one request of HTTP/2 whose content goes on. Its first \
                 line begins the command; the session ends with the content.",
                lines::<ExecSessionOutput>(),
            )
            .request(lines::<ExecSessionInput>()),
            exec_sessions::begin,
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
