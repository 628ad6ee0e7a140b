//! Pebble's API by HTTP.

mod answer;
mod exec;
mod files;
mod logs;
mod query;

use std::{path::PathBuf, sync::Arc};

use axum::{
    Extension, Router,
    body::Body,
    extract::{Path, RawQuery, State as Of},
    http::Request as HttpRequest,
    response::Response,
    routing::{get, post},
};
use periapt_pebble::{GoDuration, NoticesQuery, PodCaller, PodRefusal, PodRequest};
use serde::Deserialize;
use tokio::sync::Semaphore;

use crate::{
    core::Handle,
    files::{FileBounds, FileError, Quota, Room},
};
use answer::{answered, read_json, refused};
pub(crate) use exec::PodPrograms;
use query::Query;

/// The readers of logs at a time that wait for more.
const MAX_FOLLOWERS: usize = 32;

/// The uploads and downloads of files at a time.
const MAX_TRANSFERS: usize = 32;

/// The things that handlers use.
#[derive(Debug)]
pub(crate) struct State {
    handle: Handle,
    root: PathBuf,
    /// The owner of new files that name none; the pod's own user without one.
    owner: Option<(u32, u32)>,
    /// The bound on files; none if their file system has one.
    quota: Option<Quota>,
    /// The programs that commands can name.
    programs: PodPrograms,
    followers: Arc<Semaphore>,
    transfers: Arc<Semaphore>,
}

impl State {
    /// Creates the state of handlers, with the root of files and the owner of those that name none.
    pub(crate) fn new(
        handle: Handle,
        (root, owner): (PathBuf, Option<(u32, u32)>),
        file_bounds: Option<FileBounds>,
        programs: PodPrograms,
    ) -> Self {
        let (followers, transfers) = (Semaphore::new(MAX_FOLLOWERS), Semaphore::new(MAX_TRANSFERS));
        let quota = file_bounds.map(Quota::new);
        let (followers, transfers) = (Arc::new(followers), Arc::new(transfers));
        Self { handle, root, owner, quota, programs, followers, transfers }
    }

    /// Returns the room for the files of a request; none if there is no bound.
    async fn room(&self) -> Result<Option<Room>, PodRefusal> {
        let Some(quota) = &self.quota else { return Ok(None) };
        let refused = |error: FileError| PodRefusal { status: 500, kind: None, message: error.message };
        quota.room(&self.root).await.map(Some).map_err(refused)
    }

    async fn ask(&self, caller: PodCaller, request: PodRequest) -> Response {
        answered(self.handle.ask(caller, request).await.result)
    }
}

type Shared = Of<Arc<State>>;

/// Returns the whole API.
pub(crate) fn router(state: Arc<State>) -> Router {
    Router::new()
        .route("/v1/system-info", get(system_info))
        .route("/v1/health", get(health))
        .route("/v1/warnings", get(warnings).post(okay))
        .route("/v1/changes", get(changes))
        .route("/v1/changes/{id}", get(change).post(abort))
        .route("/v1/changes/{id}/wait", get(wait))
        .route("/v1/services", get(services).post(act_on_services))
        .route("/v1/plan", get(plan))
        .route("/v1/layers", post(add_layer))
        .route("/v1/signals", post(signal))
        .route("/v1/checks", get(checks).post(act_on_checks))
        .route("/v1/notices", get(notices).post(notify))
        .route("/v1/notices/{id}", get(notice))
        .route("/v1/identities", get(identities).post(act_on_identities))
        .route("/v1/metrics", get(metrics))
        .route("/v1/logs", get(logs::logs))
        .route("/v1/files", get(files::read).post(files::act))
        .route("/v1/exec", post(exec::exec))
        .route("/v1/tasks/{id}/websocket/{name}", get(exec::websocket))
        .fallback(missing)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

/// Returns the part of the API that is open to all.
pub(crate) fn open_router(state: Arc<State>) -> Router {
    Router::new()
        .route("/v1/system-info", get(system_info))
        .route("/v1/health", get(health))
        .fallback(missing)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

async fn missing() -> Response {
    refused(PodRefusal::missing("invalid API endpoint requested"))
}

async fn wrong_method(request: HttpRequest<Body>) -> Response {
    let message = format!("method {:?} not allowed", request.method().as_str());
    refused(PodRefusal { status: 405, kind: None, message })
}

async fn system_info(Of(state): Shared, Extension(caller): Extension<PodCaller>) -> Response {
    state.ask(caller, PodRequest::SystemInfo).await
}

async fn health(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    match query.level() {
        Ok(level) => state.ask(caller, PodRequest::Health { level, names: query.list("names") }).await,
        Err(refusal) => refused(refusal),
    }
}

async fn warnings(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    match Query::read(query.as_deref()).first("select") {
        "all" => state.ask(caller, PodRequest::Warnings { all: true }).await,
        "" | "pending" => state.ask(caller, PodRequest::Warnings { all: false }).await,
        other => refused(PodRefusal::bad(format!("invalid select parameter: {other:?}"))),
    }
}

async fn okay(Of(state): Shared, Extension(caller): Extension<PodCaller>, body: Body) -> Response {
    #[derive(Deserialize)]
    struct Okay {
        action: String,
        timestamp: jiff::Timestamp,
    }
    match read_json::<Okay>(body).await {
        Ok(Okay { action, timestamp }) if action == "okay" => {
            state.ask(caller, PodRequest::Okay(timestamp)).await
        }
        Ok(Okay { action, .. }) => refused(PodRefusal::bad(format!("unknown warning action {action:?}"))),
        Err(refusal) => refused(refusal),
    }
}

async fn changes(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    let service = Some(query.first("for")).filter(|it| !it.is_empty()).map(str::to_owned);
    state.ask(caller, PodRequest::Changes { select: query.first("select").to_owned(), service }).await
}

async fn change(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    Path(id): Path<String>,
) -> Response {
    state.ask(caller, PodRequest::Change(id)).await
}

async fn abort(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    Path(id): Path<String>,
    body: Body,
) -> Response {
    #[derive(Deserialize)]
    struct Act {
        action: String,
    }
    match read_json::<Act>(body).await {
        Ok(Act { action }) if action == "abort" => state.ask(caller, PodRequest::AbortChange(id)).await,
        Ok(Act { action }) => refused(PodRefusal::bad(format!("change action {action:?} is unsupported"))),
        Err(refusal) => refused(refusal),
    }
}

async fn wait(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
) -> Response {
    match Query::read(query.as_deref()).duration("timeout") {
        Ok(timeout) => state.ask(caller, PodRequest::WaitChange(id, timeout)).await,
        Err(refusal) => refused(refusal),
    }
}

async fn services(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    let names = Query::read(query.as_deref()).list("names");
    state.ask(caller, PodRequest::Services { names }).await
}

async fn plan(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    match Query::read(query.as_deref()).first("format") {
        "yaml" => state.ask(caller, PodRequest::Plan).await,
        other => refused(PodRefusal::bad(format!("invalid format {other:?}"))),
    }
}

async fn checks(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    let query = Query::read(query.as_deref());
    match query.level() {
        Ok(level) => state.ask(caller, PodRequest::Checks { level, names: query.list("names") }).await,
        Err(refusal) => refused(refusal),
    }
}

async fn metrics(Of(state): Shared, Extension(caller): Extension<PodCaller>) -> Response {
    state.ask(caller, PodRequest::Metrics).await
}

async fn identities(Of(state): Shared, Extension(caller): Extension<PodCaller>) -> Response {
    state.ask(caller, PodRequest::Identities).await
}

async fn notice(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    Path(id): Path<String>,
) -> Response {
    state.ask(caller, PodRequest::Notice(id)).await
}

async fn notices(
    Of(state): Shared,
    Extension(caller): Extension<PodCaller>,
    RawQuery(query): RawQuery,
) -> Response {
    match notices_query(&Query::read(query.as_deref())) {
        Ok(query) => state.ask(caller, PodRequest::Notices(Box::new(query))).await,
        Err(refusal) => refused(refusal),
    }
}

fn notices_query(query: &Query) -> Result<NoticesQuery, PodRefusal> {
    let all_users = match query.first("users") {
        "" => false,
        "all" => true,
        other => return Err(PodRefusal::bad(format!("invalid \"users\" filter {other:?}: must be \"all\""))),
    };
    let number = |text: &str| {
        text.parse().map_err(|_| PodRefusal::bad(format!("invalid \"user-id\" filter {text:?}")))
    };
    let date = |text: &str| {
        text.parse().map_err(|_| PodRefusal::bad(format!("invalid \"after\" timestamp {text:?}")))
    };
    let given = |name: &str| Some(query.first(name)).filter(|text| !text.is_empty());
    Ok(NoticesQuery {
        all_users,
        user_id: given("user-id").map(number).transpose()?,
        types: query.list("types"),
        keys: query.list("keys"),
        after: given("after").map(date).transpose()?,
        timeout: query.duration("timeout")?,
    })
}

/// Defines handlers of bodies that become requests as they are.
macro_rules! bodies {
    ($($name:ident => $request:ident,)+) => {
        $(
            async fn $name(Of(state): Shared, Extension(caller): Extension<PodCaller>, body: Body) -> Response {
                match read_json(body).await {
                    Ok(body) => state.ask(caller, PodRequest::$request(body)).await,
                    Err(refusal) => refused(refusal),
                }
            }
        )+
    };
}

bodies! {
    add_layer => AddLayer,
    act_on_services => ActOnServices,
    act_on_checks => ActOnChecks,
    act_on_identities => ActOnIdentities,
    signal => Signal,
    notify => Notify,
}

impl Query {
    fn duration(&self, name: &str) -> Result<Option<std::time::Duration>, PodRefusal> {
        match self.first(name) {
            "" => Ok(None),
            text => match text.parse::<GoDuration>() {
                Ok(duration) => Ok(Some(duration.0)),
                Err(error) => Err(PodRefusal::bad(format!("invalid {name:?}: {error}"))),
            },
        }
    }
}
