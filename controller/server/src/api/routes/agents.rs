//! The routes of agents and runners.

use std::collections::BTreeMap;

use http::Method;
use periapt_host_api::{
    AgentName,
    agent::{
        AgentAssignments, AgentPlace, CertificateRequest, IssuedCertificate, Register, RunnerAnswer,
        RunnerCommand,
    },
    api::Registered,
    command::{CommandResults, Commands},
    secret::SecretData,
    view::FrameLine,
    workload_log::PartAnswer,
};
use periapt_model::Right;

use super::{
    operation::{Content, Operation, Route, json, lines},
    query::{LOG_PART_QUERY, WATCH_QUERY},
};
use crate::api::{agents, exec_sessions, join, secrets, workload_logs};

/// Returns these routes.
pub(super) fn routes() -> Vec<Route> {
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
        Route::new("/v1/agents/{agent}/certificate").on(
            Operation::new(
                Right::JoinAgent,
                Method::POST,
                "agentCertificate",
                "Issues an agent's certificate: with a join token at first, then for the key that joined. The request needs no identity.",
                json::<IssuedCertificate>(),
            )
            .request(json::<CertificateRequest>()),
            join::certificate,
        ),
        Route::new("/v1/agents/{agent}/assignments").on(
            Operation::get(
                Right::ActAsAgent, "assignments",
                "The models with units on an agent now, and again after each change.",
                lines::<AgentAssignments>(),
            ),
            agents::assignments,
        ),
        Route::new("/v1/agents/{agent}/programs/{digest}").on(
            Operation::get(
                Right::ActAsAgent, "agentProgram",
                "The program that agents are to run, whole or in a range, once all controllers run it.",
                Content::Bytes,
            ),
            agents::program,
        ),
        Route::new("/v1/agents/{agent}/workload-logs/{id}").on(
            Operation::new(
                Right::ActAsAgent, Method::POST,
                "workloadLogPart",
                "Hands a part of a workload's output, or of a session's, over to the operator who ordered it, once there is room for it. A part is not taken without room in ten seconds.",
                json::<PartAnswer>(),
            )
            .query(LOG_PART_QUERY)
            .request(Content::Bytes),
            workload_logs::part,
        ),
        Route::new("/v1/agents/{agent}/exec-sessions/{id}/input").on(
            Operation::new(
                Right::ActAsAgent, Method::POST,
                "execSessionInput",
                "Takes the next bytes of a session's input, up to 64 KiB, once there are some; none after ten seconds without any.",
                Content::Bytes,
            ),
            exec_sessions::input,
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
        Route::new("/v1/agents/{agent}/models/{uuid}/peers").on(
            Operation::get(
                Right::ActAsRunner, "peers",
                "The ways to the other agents with units of the runner's applications and of related ones.",
                json::<BTreeMap<AgentName, AgentPlace>>(),
            ),
            agents::peers,
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
