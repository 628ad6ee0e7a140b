//! `/v1/controller`, `/v1/commands`, `/v1/agents`: what belongs to no model.

use axum::{Json, body::Body, extract::State};
use http::HeaderMap;
use periapt_host_api::{
    api::ModelDefaults,
    cloud::Kept,
    command::{AgentSummary, Answer as Answered, CommandResults, ControllerCommand, ControllerInfo},
};
use periapt_model::{Input, Output, agent_summaries};

use crate::{
    api::{body, bulk, caller::Who, failure::Answer},
    engine::Engine,
    writer::Lane,
};

pub(crate) async fn info(State(engine): State<Engine>, _: Who) -> Answer<Json<ControllerInfo>> {
    Ok(Json(engine.info()?))
}

pub(crate) async fn commands(
    State(engine): State<Engine>,
    Who(caller): Who,
    headers: HeaderMap,
    content: Body,
) -> Answer<Json<CommandResults<Answered>>> {
    let commands = body::commands::<ControllerCommand>(&engine, &headers, content).await?;
    let results =
        bulk::submit(&engine, Lane::Controller, &caller, commands, Input::Controller, answer).await?;
    Ok(Json(results))
}

/// What a command of an operator is answered.
pub(crate) fn answer(output: Output) -> Option<Answered> {
    match output {
        Output::Answer(answer) => Some(answer),
        Output::Done => Some(Answered::Done),
        Output::Runner(_) => None,
    }
}

pub(crate) async fn kept(State(engine): State<Engine>, who: Who) -> Answer<Json<Kept>> {
    who.user()?;
    let published = engine.current();
    Ok(Json(published.root.controller().map(|controller| controller.kept.clone()).unwrap_or_default()))
}

pub(crate) async fn agents(State(engine): State<Engine>, who: Who) -> Answer<Json<Vec<AgentSummary>>> {
    who.user()?;
    Ok(Json(agent_summaries(&engine.current().root, engine.clock.now())))
}

pub(crate) async fn model_defaults(State(engine): State<Engine>, who: Who) -> Answer<Json<ModelDefaults>> {
    who.user()?;
    let published = engine.current();
    let set = published.root.controller().map(|controller| controller.model_defaults.clone());
    Ok(Json(ModelDefaults::of(&set.unwrap_or_default())))
}
