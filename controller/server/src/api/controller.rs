//! The routes `/v1/controller`, `/v1/commands` and `/v1/agents`, which are about no model.

use std::sync::Arc;

use axum::{Json, body::Body, extract::State};
use http::HeaderMap;
use periapt_host_api::{
    api::ModelDefaults,
    cloud::Kept,
    command::{AgentSummary, Answer as Answered, CommandResults, ControllerCommand, ControllerInfo},
};
use periapt_model::{Input, Output, agent_summaries};

use crate::{
    api::{body, bulk, caller::RequestCaller, failure::Answer},
    clock::Clock,
    show::StatusSource,
    state::{Durable, Intake},
    writer::Lane,
};

pub(crate) async fn info(
    State(durable): State<Durable>,
    State(statuses): State<StatusSource>,
    _: RequestCaller,
) -> Answer<Json<ControllerInfo>> {
    Ok(Json(statuses.info(&durable.current())?))
}

pub(crate) async fn commands(
    State(intake): State<Intake>,
    RequestCaller(caller): RequestCaller,
    headers: HeaderMap,
    content: Body,
) -> Answer<Json<CommandResults<Answered>>> {
    let commands = body::commands::<ControllerCommand>(&intake, &headers, content).await?;
    let results =
        bulk::submit(&intake, Lane::Controller, &caller, commands, Input::Controller, answer).await?;
    Ok(Json(results))
}

/// Returns the answer to an operator's command.
pub(crate) fn answer(output: Output) -> Option<Answered> {
    match output {
        Output::Answer(answer) => Some(answer),
        Output::Done => Some(Answered::Done),
        Output::Runner(_) => None,
    }
}

pub(crate) async fn kept(State(durable): State<Durable>, who: RequestCaller) -> Answer<Json<Kept>> {
    who.user()?;
    let published = durable.current();
    Ok(Json(published.root.controller().map(|controller| controller.kept.clone()).unwrap_or_default()))
}

pub(crate) async fn agents(
    State(durable): State<Durable>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
) -> Answer<Json<Vec<AgentSummary>>> {
    who.user()?;
    Ok(Json(agent_summaries(&durable.current().root, clock.now())))
}

pub(crate) async fn model_defaults(
    State(durable): State<Durable>,
    who: RequestCaller,
) -> Answer<Json<ModelDefaults>> {
    who.user()?;
    let published = durable.current();
    let set = published.root.controller().map(|controller| controller.model_defaults.clone());
    Ok(Json(ModelDefaults::of(&set.unwrap_or_default())))
}
