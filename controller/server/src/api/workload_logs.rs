//! The routes by which the output of workloads goes from agents to operators; that of sessions (`exec_sessions`) comes in
//! the same parts.

use std::time::Duration;

use axum::{
    Json,
    body::Body,
    extract::{FromRef, Path, RawQuery, State},
    response::Response,
};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::{HeaderMap, Version};
use periapt_host_api::{
    AgentName, ContainerName, ErrorCode, Refusal, RequestId, UnitName,
    workload_log::{PartAnswer, WorkloadLogOrder, WorkloadLogPart, WorkloadLogQuery},
};
use periapt_model::{ModelState, Right, Root, Subject, check_container};

use crate::{
    api::{
        body, caller::RequestCaller, failure::HandlerResult, find::parsed, models::readable, query::Query,
        streams,
    },
    bounds::StreamOf,
    presence::Presence,
    replication::Freshness,
    state::{ControllerState, Durable, Streams},
    workload_logs::WorkloadLog,
    workload_orders::WorkloadOrders,
};

/// The pause between two looks whether an agent is still here.
const LOOKS: Duration = Duration::from_secs(5);

/// The parts of the state that logs need.
pub(crate) struct LogServices {
    streams: Streams,
    orders: WorkloadOrders,
    freshness: Freshness,
}

impl FromRef<ControllerState> for LogServices {
    fn from_ref(state: &ControllerState) -> Self {
        Self {
            streams: state.streams.clone(),
            orders: state.workload_orders.clone(),
            freshness: state.freshness.clone(),
        }
    }
}

fn log_query(text: Option<&str>) -> Result<WorkloadLogQuery, Refusal> {
    let mut query = Query::parse(text)?;
    let container: Option<ContainerName> = query.one("container")?;
    let read = WorkloadLogQuery {
        container: container.ok_or_else(|| Refusal::bad_request("query container is missing"))?,
        services: query.all("service")?,
        tail: query.one("tail")?,
        follow: query.flag("follow")?,
    };
    query.end()?;
    read.check()?;
    Ok(read)
}

/// Returns the agent that serves a container of a unit, which must be connected to this controller.
///
/// # Errors
/// There is no such unit or container, or no agent that is here.
pub(super) fn agent_of(
    root: &Root,
    state: &ModelState,
    streams: &Streams,
    (unit, container): (&UnitName, &ContainerName),
) -> Result<AgentName, Refusal> {
    let found = state.unit(unit).ok_or_else(|| Refusal::not_found(format!("unit {unit:?} not found")))?;
    check_container(root, state, found, container)?;
    let later = |text: String| Refusal::new(ErrorCode::TryAgain, text);
    let agent = state.agent_of(found).ok_or_else(|| later(format!("unit {unit} has no machine yet")))?;
    match streams.presence.is_here(agent) {
        true => Ok(agent.clone()),
        false => Err(later(format!("agent {agent} is not connected to this controller"))),
    }
}

/// Returns the error of a log that ended before the pod's answer did. The reader must not take it for the whole.
fn cut_short() -> Refusal {
    Refusal::new(ErrorCode::TryAgain, "the log was cut short: its agent is away, or was started again")
}

/// Waits until an agent is away at two looks in turn: the log of one that connects anew goes on.
async fn is_away(presence: Presence, agent: AgentName) {
    let mut missed = 0;
    while missed < 2 {
        tokio::time::sleep(LOOKS).await;
        missed = if presence.is_here(&agent) { 0 } else { missed + 1 };
    }
}

/// Answers an operator with what a unit's pod answers.
pub(crate) async fn of_unit(
    State(durable): State<Durable>,
    State(LogServices { streams, orders, freshness }): State<LogServices>,
    who: RequestCaller,
    Path((model, application, number)): Path<(String, String, String)>,
    version: Version,
    RawQuery(query): RawQuery,
) -> HandlerResult<Response> {
    let query = log_query(query.as_deref())?;
    let unit: UnitName = parsed(&format!("{application}/{number}"))?;
    let (published, state) = readable(&durable, &who, &model)?;
    who.require(&published.root, Right::WriteModel, Subject::Model(&state))?;
    let about = |refusal: Refusal| refusal.about(format!("unit {unit}"));
    let agent = agent_of(&published.root, &state, &streams, (&unit, &query.container)).map_err(about)?;
    let uuid = state.model().uuid;
    let permit = streams.limits.admit(StreamOf::Model(uuid), version)?;
    let follows = query.follow;
    let order = WorkloadLogOrder { model: uuid, unit: unit.clone(), query };
    let mut log = WorkloadLog::open(&orders, agent.clone(), order)?;
    let first = log.begun(&agent).await.map_err(about)?;
    let presence = streams.presence.clone();
    let ends = async move {
        tokio::select! {
            () = freshness.lost() => {}
            () = is_away(presence, agent) => {}
        }
    };
    let (patient, watch) = log.watched(&orders, (streams.stop, ends.boxed()));
    let rest = stream::unfold(Some((log, watch)), move |reading| async move {
        let (mut log, watch) = reading?;
        match log.next().await {
            Some(bytes) => Some((Ok(bytes), Some((log, watch)))),
            // A followed log has no natural end, and its reader is told of each.
            None if follows || log.is_whole() => None,
            None => Some((Err(cut_short()), None)),
        }
    });
    let mut response = streams::parts(permit, stream::iter([Ok(first)]).chain(rest));
    // Without HTTP/2 no pings tell that the reader's connection lives.
    if version >= Version::HTTP_2 {
        response.extensions_mut().insert(patient);
    }
    Ok(response)
}

/// Takes a part from an agent.
pub(crate) async fn part(
    State(orders): State<WorkloadOrders>,
    who: RequestCaller,
    Path((agent, id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<PartAnswer>> {
    let (agent, id): (AgentName, RequestId) = (parsed(&agent)?, parsed(&id)?);
    who.agent(&agent)?;
    let mut query = Query::parse(query.as_deref())?;
    let part: Option<String> = query.one("part")?;
    query.end()?;
    let part = part.and_then(|part| part.parse::<WorkloadLogPart>().ok());
    let part = part.ok_or_else(|| Refusal::bad_request("query part: begun, data, end or failed expected"))?;
    let bytes = body::small_bytes(&headers, content).await?;
    Ok(Json(orders.pass(&agent, id, (part, bytes)).await?))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_agent_that_connects_anew_is_not_away_and_one_that_does_not_is_soon() {
        let (presence, agent) = (Presence::default(), "a1".parse::<AgentName>().unwrap());
        let connected = presence.connected(agent.clone());
        let mut away = pin!(is_away(presence.clone(), agent.clone()));
        assert!(tokio::time::timeout(100 * LOOKS, &mut away).await.is_err());
        drop(connected);
        tokio::time::sleep(LOOKS / 2).await;
        let connected = presence.connected(agent);
        assert!(tokio::time::timeout(100 * LOOKS, &mut away).await.is_err());
        drop(connected);
        tokio::time::timeout(3 * LOOKS, away).await.unwrap();
    }
}
