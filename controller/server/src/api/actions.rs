//! The routes `/v1/models/MODEL/operations` and `/tasks`, and the actions of an application.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::{Stream, stream};
use http::Version;
use periapt_host_api::{
    ActionOperationId, ApplicationName, ModelUuid, Refusal, TaskId,
    action::{OperationDetails, OperationQuery, TaskDetails, TaskUpdate},
    charm::ActionMeta,
};
use periapt_store::RecordPosition;
use tokio_util::sync::CancellationToken;

use crate::{
    api::{
        caller::RequestCaller, failure::HandlerResult, find::parsed, models::readable, query::Query, streams,
    },
    bounds::StreamOf,
    state::{Durable, Streams},
    tasks,
    watch::{LogOf, Subscriber},
};

/// Returns the actions that an application's charm declares.
pub(crate) async fn of_application(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((model, application)): Path<(String, String)>,
) -> HandlerResult<Json<BTreeMap<String, ActionMeta>>> {
    let name: ApplicationName = parsed(&application)?;
    let (published, state) = readable(&durable, &who, &model)?;
    let application = state.application(&name).ok_or_else(|| {
        Refusal::not_found(format!("application {:?} not found", name.as_str()))
            .about(format!("application {name}"))
    })?;
    let charm = published.root.charm(&application.charm.digest);
    Ok(Json(charm.map(|charm| charm.meta.actions.clone()).unwrap_or_default()))
}

pub(crate) async fn operations(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<Vec<OperationDetails>>> {
    let mut read = Query::parse(query.as_deref())?;
    let query = OperationQuery {
        actions: read.all("action")?,
        applications: read.all("application")?,
        units: read.all("unit")?,
        status: read.all("status")?,
        limit: read.one("limit")?,
        offset: read.one("offset")?.unwrap_or_default(),
    };
    read.end()?;
    let (_, state) = readable(&durable, &who, &model)?;
    Ok(Json(tasks::list(&state, &query)))
}

pub(crate) async fn operation(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((model, id)): Path<(String, String)>,
) -> HandlerResult<Json<OperationDetails>> {
    let id = operation_id(&id)?;
    let (_, state) = readable(&durable, &who, &model)?;
    let operation = state.operation(&id).ok_or_else(|| no_operation(id))?;
    Ok(Json(tasks::operation(&*durable.records()?, &state, operation).await?))
}

pub(crate) async fn task(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((model, id)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<TaskDetails>> {
    let mut read = Query::parse(query.as_deref())?;
    let after: Option<String> = read.one("after")?;
    read.end()?;
    let after = after.as_deref().map(tasks::parse_cursor).transpose()?;
    let wrong = |_| Refusal::bad_request(format!("task id {id:?} is not a number"));
    let id: TaskId = id.parse().map_err(wrong)?;
    let (_, state) = readable(&durable, &who, &model)?;
    let task = state.task(&id).ok_or_else(|| Refusal::not_found(format!("task \"{id}\" not found")))?;
    let (store, mut room) = (durable.records()?, tasks::PAGE_BYTES);
    Ok(Json(tasks::task(&*store, &state.model().uuid, task, after, &mut room).await?))
}

pub(crate) async fn watch(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    who: RequestCaller,
    Path((model, id)): Path<(String, String)>,
    version: Version,
) -> HandlerResult<Response> {
    let id = operation_id(&id)?;
    let (_, state) = readable(&durable, &who, &model)?;
    let operation = state.operation(&id).ok_or_else(|| no_operation(id))?;
    let permit = streams.limits.admit(StreamOf::Model(state.model().uuid), version)?;
    // Checked before the first byte, so that an unreadable store gives an error and not an endless silence.
    durable.records()?;
    let open = operation.tasks.iter().map(|task| (*task, Followed::default())).collect();
    // Tasks' records are written with their model, as log lines are.
    let subscriber = streams.watches.logs.join(LogOf(state.model().uuid), durable.current(), || ());
    let watch = Watch { subscriber, model: state.model().uuid, durable, stop: streams.stop, open };
    Ok(streams::groups(permit, watch.stream()))
}

fn operation_id(text: &str) -> Result<ActionOperationId, Refusal> {
    text.parse().map_err(|_| Refusal::bad_request(format!("operation id {text:?} is not a number")))
}

fn no_operation(id: ActionOperationId) -> Refusal {
    Refusal::not_found(format!("operation \"{id}\" not found"))
}

/// A watch of an operation, until the last of its tasks has ended.
struct Watch {
    durable: Durable,
    stop: CancellationToken,
    subscriber: Subscriber<LogOf>,
    model: ModelUuid,
    open: BTreeMap<TaskId, Followed>,
}

/// The progress of a watch in one task: the records already sent.
#[derive(Debug, Clone, Copy, Default)]
struct Followed {
    messages: u32,
    after: Option<RecordPosition>,
}

impl Watch {
    fn stream(self) -> impl Stream<Item = Result<Vec<TaskUpdate>, Refusal>> + Send {
        stream::unfold(self, |mut watch| async move { watch.next().await.map(|updates| (updates, watch)) })
    }

    /// Returns the next messages and ends of tasks, or none when all tasks have ended, the model is gone, or the
    /// controller stops.
    async fn next(&mut self) -> Option<Result<Vec<TaskUpdate>, Refusal>> {
        while !self.open.is_empty() {
            // Taken before reading: later writes get another number.
            let shown = self.subscriber.shown().number;
            match self.updates().await {
                Ok(updates) if updates.is_empty() => {}
                Ok(updates) => return Some(Ok(updates)),
                Err(refusal) => {
                    tracing::warn!(%refusal, "an operation cannot be followed further");
                    return Some(Err(refusal));
                }
            }
            while self.subscriber.shown().number == shown {
                tokio::select! {
                    () = self.stop.cancelled() => return None,
                    () = self.subscriber.notified() => {}
                }
            }
        }
        None
    }

    async fn updates(&mut self) -> Result<Vec<TaskUpdate>, Refusal> {
        let published = self.durable.current();
        let Some(state) = published.root.model(&self.model) else {
            self.open.clear();
            return Ok(Vec::new());
        };
        let mut updates = Vec::new();
        // The bytes of one turn are bounded; the next turn goes on where this one ended.
        let mut room = tasks::PAGE_BYTES;
        for (id, mut followed) in self.open.clone() {
            if room == 0 {
                break;
            }
            let Some(task) = state.task(&id) else {
                self.open.remove(&id);
                continue;
            };
            let store = self.durable.records()?;
            if task.messages > followed.messages {
                let found = tasks::records(&*store, &self.model, id, followed.after, &mut room).await?;
                followed.messages =
                    followed.messages.saturating_add(u32::try_from(found.log.len()).unwrap_or(u32::MAX));
                followed.after = found.after;
                self.open.insert(id, followed);
                updates
                    .extend(found.log.into_iter().map(|message| TaskUpdate::Message { task: id, message }));
            }
            if !task.status.is_open() && room > 0 {
                let details = tasks::task(&*store, &self.model, task, None, &mut room).await?;
                updates.push(TaskUpdate::Ended(Box::new(details)));
                self.open.remove(&id);
            }
        }
        Ok(updates)
    }
}
