//! The routes `/v1/controller`, `/v1/commands` and `/v1/agents`, which are about no model.

use std::sync::Arc;

use axum::{Json, body::Body, extract::State};
use http::HeaderMap;
use periapt_host_api::{
    api::ModelDefaults,
    cloud::StoredClouds,
    command::{AgentSummary, Answer, CommandResults, ControllerCommand, ControllerInfo},
};
use periapt_model::{Input, Output, Right, Subject, agent_summaries};

use crate::{
    api::{body, bulk, caller::RequestCaller, failure::HandlerResult, find::visible_models},
    clock::Clock,
    replication::{Freshness, Members},
    show::StatusSource,
    state::{Durable, Submission},
    writer::QueueKey,
};

pub(crate) async fn info(
    State(durable): State<Durable>,
    State(statuses): State<StatusSource>,
    State(members): State<Members>,
    State(freshness): State<Freshness>,
) -> HandlerResult<Json<ControllerInfo>> {
    let shown = statuses.info(&durable.current())?;
    let (program, target) = (members.running(), members.target());
    let (log, stale) = (members.log(), freshness.is_stale());
    let mut info = ControllerInfo { log, stale, program, target, ..shown };
    let is_new = |url: &&String| !url.is_empty() && !info.addresses.contains(*url);
    let others = info.members.iter().map(|member| &member.url).filter(is_new);
    info.addresses.extend(others.cloned().collect::<Vec<_>>());
    Ok(Json(info))
}

pub(crate) async fn commands(
    State(submission): State<Submission>,
    who: RequestCaller,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<CommandResults<Answer>>> {
    let commands = body::commands::<ControllerCommand>(&submission, &headers, content).await?;
    let results =
        bulk::submit(&submission, QueueKey::Controller, &who, commands, Input::Controller, answer).await?;
    Ok(Json(results))
}

/// Returns the answer to an operator's command.
pub(crate) fn answer(output: Output) -> Option<Answer> {
    match output {
        Output::Answer(answer) => Some(answer),
        Output::Done => Some(Answer::Done),
        Output::Runner(_) | Output::Session(_) => None,
    }
}

pub(crate) async fn kept(State(durable): State<Durable>) -> HandlerResult<Json<StoredClouds>> {
    let published = durable.current();
    Ok(Json(published.root.controller().map(|controller| controller.kept.clone()).unwrap_or_default()))
}

pub(crate) async fn agents(
    State(durable): State<Durable>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
) -> HandlerResult<Json<Vec<AgentSummary>>> {
    let root = &durable.current().root;
    let all = who.may(root, Right::ManageController, Subject::Controller);
    let now = (clock.now(), clock.monotonic_ms());
    let mut agents = agent_summaries(root, now, visible_models(root, &who).into_iter());
    // Other users see the agents that host machines of their models.
    agents.retain(|agent| all || agent.machines > 0);
    Ok(Json(agents))
}

pub(crate) async fn model_defaults(State(durable): State<Durable>) -> HandlerResult<Json<ModelDefaults>> {
    let published = durable.current();
    let set = published.root.controller().map(|controller| controller.model_defaults.clone());
    Ok(Json(ModelDefaults::of(&set.unwrap_or_default())))
}
