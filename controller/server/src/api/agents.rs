//! `/v1/agents`: what keepers ask, for themselves and for their runners.

use axum::{
    Json,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::stream;
use http::{HeaderMap, Version};
use periapt_host_api::{
    AgentName, ModelUuid, Refusal,
    agent::{AgentAssignments, Register, RunnerAnswer, RunnerCommand},
    api::{Registered, WatchPosition},
    command::CommandResults,
};
use periapt_model::{Input, Output, assignments as assigned};
use tokio_util::sync::CancellationToken;

use crate::{
    api::{body, bulk, caller::Who, failure::Answer, models::parsed, query::Query, streams},
    bounds::StreamOf,
    presence::Connected,
    published::Subscription,
    state::{Durable, Intake, Streams},
    watch::{ViewOf, Watch},
    writer::Lane,
};

pub(crate) async fn register(
    State(durable): State<Durable>,
    State(intake): State<Intake>,
    who: Who,
    Path(agent): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> Answer<Json<Registered>> {
    let agent: AgentName = parsed(&agent)?;
    let caller = who.agent(&agent)?;
    let register: Register = body::value(&intake, &headers, content).await?;
    let input = Input::Register(agent, register);
    let (_, revision) = intake.commands.submit_one(Lane::Controller, caller, input, 0).await?;
    Ok(Json(Registered { store: durable.current().store, revision }))
}

pub(crate) async fn assignments(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    who: Who,
    Path(agent): Path<String>,
    version: Version,
) -> Answer<Response> {
    let agent: AgentName = parsed(&agent)?;
    who.agent(&agent)?;
    let place = streams.places.take(StreamOf::Agent(agent.clone()), version)?;
    let watch = AssignmentWatch {
        _connected: streams.presence.connected(agent.clone()),
        state: durable.state,
        stop: streams.stop,
        agent,
        last: None,
    };
    let values =
        stream::unfold(watch, |mut watch| async move { watch.next().await.map(|value| (value, watch)) });
    Ok(streams::lines(place, values))
}

/// An agent's assignments, sent whenever they differ in more than the revision.
struct AssignmentWatch {
    state: Subscription,
    stop: CancellationToken,
    agent: AgentName,
    last: Option<AgentAssignments>,
    _connected: Connected,
}

impl AssignmentWatch {
    async fn next(&mut self) -> Option<AgentAssignments> {
        loop {
            let next = assigned(&self.state.seen().root, &self.agent);
            if self.last.as_ref().is_none_or(|last| last.models != next.models) {
                self.last = Some(next.clone());
                return Some(next);
            }
            tokio::select! {
                () = self.stop.cancelled() => return None,
                alive = self.state.changed() => if !alive { return None },
            }
        }
    }
}

pub(crate) async fn watch(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    who: Who,
    Path((agent, model)): Path<(String, String)>,
    version: Version,
    RawQuery(query): RawQuery,
) -> Answer<Response> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    who.runner(&agent, model)?;
    let mut query = Query::parse(query.as_deref())?;
    let position = match (query.one("store")?, query.one("revision")?) {
        (Some(store), Some(revision)) => Some(WatchPosition { store, revision }),
        (None, None) => None,
        _ => return Err(Refusal::bad_request("a position is a store and a revision").into()),
    };
    query.end()?;
    let place = streams.places.take(StreamOf::Runner(model), version)?;
    let of = ViewOf { model, agent: agent.clone() };
    let watch = Watch::new(&streams.watches, durable.state.clone(), of, position);
    let connected = streams.presence.connected(agent);
    let stop = streams.stop.clone();
    let frames = stream::unfold((watch, connected, stop), |(mut watch, connected, stop)| async move {
        watch.next(&stop).await.map(|frame| (frame, (watch, connected, stop)))
    });
    Ok(streams::encoded(place, frames))
}

pub(crate) async fn commands(
    State(intake): State<Intake>,
    who: Who,
    Path((agent, model)): Path<(String, String)>,
    headers: HeaderMap,
    content: Body,
) -> Answer<Json<CommandResults<RunnerAnswer>>> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = who.runner(&agent, model)?;
    let commands = body::commands::<RunnerCommand>(&intake, &headers, content).await?;
    let input = |command| Input::Runner(model, command);
    Ok(Json(bulk::submit(&intake, Lane::Model(model), &caller, commands, input, answer).await?))
}

fn answer(output: Output) -> Option<RunnerAnswer> {
    match output {
        Output::Runner(answer) => Some(answer),
        Output::Done => Some(RunnerAnswer::Done),
        Output::Answer(_) => None,
    }
}
