//! The routes below `/v1/agents` that keepers use, for themselves and for their runners.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Version};
use periapt_host_api::{
    AgentName, Digest, ModelUuid, Refusal,
    agent::{AgentAssignments, AgentPlace, Register, RunnerAnswer, RunnerCommand},
    api::{Registered, WatchPosition},
    command::CommandResults,
};
use periapt_model::{
    Input, Output, assignment, assignments as assignments_of, moved_to, peers as peers_of, program_within,
    released_program,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{
        blob, body, bulk, caller::RequestCaller, failure::HandlerResult, find::parsed, query::Query,
        seen::reached, streams,
    },
    bounds::StreamOf,
    presence::Connected,
    published::{Published, Subscription},
    replication::Members,
    state::{Durable, Resources, StoredContent, Streams, Submission},
    watch::{ViewOf, Watch},
    workload_orders::WorkloadOrders,
    writer::QueueKey,
};

pub(crate) async fn register(
    State(durable): State<Durable>,
    State(submission): State<Submission>,
    who: RequestCaller,
    Path(agent): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<Registered>> {
    let agent: AgentName = parsed(&agent)?;
    let caller = who.agent(&agent)?;
    let register: Register = body::value(&submission, &headers, content).await?;
    let input = Input::Register(agent, register);
    let (_, revision) = submission.commands.submit_one(QueueKey::Controller, caller, input, 0).await?;
    Ok(Json(Registered { store: durable.current().store, revision }))
}

pub(crate) async fn assignments(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    State(members): State<Members>,
    State(orders): State<WorkloadOrders>,
    who: RequestCaller,
    Path(agent): Path<String>,
    version: Version,
) -> HandlerResult<Response> {
    let agent: AgentName = parsed(&agent)?;
    who.agent(&agent)?;
    let permit = streams.limits.admit(StreamOf::Agent(agent.clone()), version)?;
    let watch = AssignmentWatch {
        _connected: streams.presence.connected(agent.clone()),
        state: durable.state,
        urls: members.urls(),
        order_changes: orders.changes(),
        orders,
        stop: streams.stop,
        agent,
        looked_at: None,
        assigned: AgentAssignments::default(),
    };
    let values =
        stream::unfold(watch, |mut watch| async move { watch.next().await.map(|value| (value, watch)) });
    Ok(streams::lines(permit, values))
}

/// Answers with the program that agents are to run.
pub(crate) async fn program(
    State(Resources { contents, .. }): State<Resources>,
    State(durable): State<Durable>,
    who: RequestCaller,
    method: Method,
    Path((agent, digest)): Path<(String, String)>,
    headers: HeaderMap,
) -> HandlerResult<Response> {
    let (agent, digest): (AgentName, Digest) = (parsed(&agent)?, parsed(&digest)?);
    who.agent(&agent)?;
    if released_program(&durable.current().root).is_none_or(|target| target.offer.digest != digest) {
        return Err(Refusal::not_found(format!("program {digest} not found")).into());
    }
    blob::respond(&contents, &StoredContent::blob(digest), &method, &headers).await
}

/// The watch of an agent's assignments, which sends them whenever they differ in more than the revision.
struct AssignmentWatch {
    state: Subscription,
    /// The URLs of all controllers.
    urls: watch::Receiver<Vec<String>>,
    /// The orders of operators to workloads, and their changes.
    orders: WorkloadOrders,
    order_changes: watch::Receiver<()>,
    stop: CancellationToken,
    agent: AgentName,
    looked_at: Option<Arc<Published>>,
    assigned: AgentAssignments,
    _connected: Connected,
}

impl AssignmentWatch {
    async fn next(&mut self) -> Option<AgentAssignments> {
        loop {
            let published = self.state.seen();
            let differs = self.look(&published);
            let urls = self.urls.borrow_and_update().clone();
            let is_new = std::mem::replace(&mut self.assigned.addresses, urls) != self.assigned.addresses;
            let program = released_program(&published.root);
            let is_next = self.assigned.program.as_ref() != program;
            if is_next {
                self.assigned.program = program.cloned();
                // The number of agents may change while they fetch the program: those that wait need not know.
                self.assigned.program_within = program_within(&published.root);
            }
            let moved = moved_to(&published.root, &self.agent);
            let has_moved = self.assigned.moved != moved;
            self.assigned.moved = moved;
            self.order_changes.mark_unchanged();
            let logs = self.orders.logs_of(&self.agent);
            let sessions = self.orders.sessions_of(&self.agent);
            let has_orders = self.assigned.logs != logs || self.assigned.sessions != sessions;
            (self.assigned.logs, self.assigned.sessions) = (logs, sessions);
            if differs || is_new || is_next || has_moved || has_orders {
                self.assigned.revision = published.revision();
                return Some(self.assigned.clone());
            }
            tokio::select! {
                () = self.stop.cancelled() => return None,
                alive = self.state.changed() => if !alive { return None },
                // The sender lives as long as the controller.
                Ok(()) = self.urls.changed() => {}
                Ok(()) = self.order_changes.changed() => {}
            }
        }
    }

    /// Looks at the models that were written since the last call. Returns true if there is something to send.
    fn look(&mut self, published: &Arc<Published>) -> bool {
        let before = self.looked_at.replace(Arc::clone(published));
        let last = before.as_ref().filter(|last| last.store == published.store);
        let Some(written) = last.and_then(|last| published.changed.models_since(&last.changed)) else {
            let all = assignments_of(&published.root, &self.agent);
            let differs = self.assigned.models != all.models;
            self.assigned.models = all.models;
            return before.is_none() || differs;
        };
        let mut differs = false;
        for model in written {
            let state = published.root.model_or_remains(&model);
            let now = state.and_then(|state| assignment(state, &self.agent));
            if self.assigned.models.get(&model) != now.as_ref() {
                differs = true;
                match now {
                    Some(now) => drop(self.assigned.models.insert(model, now)),
                    None => drop(self.assigned.models.remove(&model)),
                }
            }
        }
        differs
    }
}

pub(crate) async fn watch(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    who: RequestCaller,
    Path((agent, model)): Path<(String, String)>,
    version: Version,
    RawQuery(query): RawQuery,
) -> HandlerResult<Response> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    who.runner(&agent, model)?;
    let mut query = Query::parse(query.as_deref())?;
    let position = match (query.one("store")?, query.one("revision")?) {
        (Some(store), Some(revision)) => Some(WatchPosition { store, revision }),
        (None, None) => None,
        _ => return Err(Refusal::bad_request("a position is a store and a revision").into()),
    };
    query.end()?;
    if let Some(seen) = position {
        reached(durable.state.clone(), seen).await?;
    }
    let permit = streams.limits.admit(StreamOf::Runner(model), version)?;
    let of = ViewOf { model, agent: agent.clone() };
    let watch = Watch::new(&streams.watches, durable.state.clone(), of, position);
    let connected = streams.presence.connected(agent.clone());
    // In a box: the stream's future would have room for it twice.
    let own = Box::new(OwnWatch { watch, _connected: connected, durable, agent, model });
    let stop = streams.stop.clone();
    let frames = stream::unfold((own, stop), |(mut own, stop)| async move {
        own.next(&stop).await.map(|frame| (frame, (own, stop)))
    });
    Ok(streams::encoded(permit, frames))
}

/// The watch of a runner's view, which ends once the agent has nothing left of the model.
struct OwnWatch {
    watch: Watch,
    durable: Durable,
    agent: AgentName,
    model: ModelUuid,
    _connected: Connected,
}

impl OwnWatch {
    async fn next(&mut self, stop: &CancellationToken) -> Option<Bytes> {
        if self.has_lost_the_model() { None } else { self.watch.next(stop).await }
    }

    fn has_lost_the_model(&self) -> bool {
        let root = &self.durable.current().root;
        root.model_or_remains(&self.model).and_then(|state| assignment(state, &self.agent)).is_none()
    }
}

/// Answers with the ways to other agents, as the newest state has them.
pub(crate) async fn peers(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((agent, model)): Path<(String, String)>,
) -> HandlerResult<Json<BTreeMap<AgentName, AgentPlace>>> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = who.runner(&agent, model)?;
    Ok(Json(peers_of(&durable.current().root, &caller)))
}

pub(crate) async fn commands(
    State(submission): State<Submission>,
    who: RequestCaller,
    Path((agent, model)): Path<(String, String)>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<CommandResults<RunnerAnswer>>> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = RequestCaller { caller: who.runner(&agent, model)?, ..who };
    let commands = body::commands::<RunnerCommand>(&submission, &headers, content).await?;
    let input = |command| Input::Runner(model, command);
    Ok(Json(bulk::submit(&submission, QueueKey::Model(model), &caller, commands, input, answer).await?))
}

fn answer(output: Output) -> Option<RunnerAnswer> {
    match output {
        Output::Runner(answer) => Some(answer),
        Output::Done => Some(RunnerAnswer::Done),
        Output::Answer(_) | Output::Session(_) => None,
    }
}
