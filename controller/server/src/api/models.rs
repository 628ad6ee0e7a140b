//! The routes `/v1/models`: the data of a model for operators, and the commands that change it.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::{Path, RawQuery, State},
    response::Response,
};
use futures_util::stream;
use http::{HeaderMap, Version};
use periapt_host_api::{
    ApplicationName, ErrorCode, Refusal, UnitName,
    api::{ApplicationDetails, ModelConfigDetails, ModelSelector, SpaceList, UnitDetails},
    command::{Answer, Command, CommandResults, ModelSummary},
    constraints::{Constraints, Limited},
    migration::{ImportPlan, MigrationStatus},
    refresh::RefreshPlan,
    ssh_key::SshKey,
    status::{CombinedStorage, FullStatus, MachineStatus},
    usage::ModelUsage,
    user::ModelUser,
};
use periapt_model::{
    Environment, Input, ModelState, RefreshRequest, Right, Subject, combined_storage, migration_status,
    model_summary, model_usage, model_users, plan_migration, plan_refresh,
};

use crate::{
    api::{
        body, bulk,
        caller::RequestCaller,
        controller::answer,
        failure::HandlerResult,
        find::{find_model, find_moved, parsed, visible_models},
        query::Query,
        streams,
    },
    bounds::StreamOf,
    clock::Clock,
    published::Published,
    records,
    show::{self, StatusSource},
    state::{Durable, Streams, Submission},
    watch::StatusWatch,
    writer::QueueKey,
};

/// The number of newest hooks that are shown with a unit.
const SHOWN_HOOKS: usize = 20;

/// Returns a model that a caller may read, in its current state.
pub(crate) fn readable(
    durable: &Durable,
    who: &RequestCaller,
    model: &str,
) -> Result<(Arc<Published>, Arc<ModelState>), Refusal> {
    let selector: ModelSelector = parsed(model)?;
    let published = durable.current();
    let state = find_model(&published.root, who, &selector)?;
    Ok((published, state))
}

pub(crate) async fn list(
    State(durable): State<Durable>,
    who: RequestCaller,
) -> HandlerResult<Json<Vec<ModelSummary>>> {
    let root = &durable.current().root;
    let seen = visible_models(root, &who).into_iter();
    Ok(Json(seen.map(|state| model_summary(root, state, &who.caller)).collect()))
}

pub(crate) async fn one(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<ModelSummary>> {
    let (published, state) = readable(&durable, &who, &model)?;
    Ok(Json(model_summary(&published.root, &state, &who.caller)))
}

/// Returns the state of a model's migration, also of a model that has moved; none without a migration.
pub(crate) async fn migration(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<Option<MigrationStatus>>> {
    let selector: ModelSelector = parsed(&model)?;
    let published = durable.current();
    let root = &published.root;
    let state = match find_model(root, &who, &selector) {
        Err(refusal) if refusal.code == ErrorCode::Moved => {
            find_moved(root, &who, &selector).cloned().ok_or(refusal)?
        }
        found => found?,
    };
    Ok(Json(migration_status(&state)))
}

/// Returns what another controller needs to know before a model migrates to it.
pub(crate) async fn migration_plan(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<ImportPlan>> {
    let (published, state) = readable(&durable, &who, &model)?;
    who.require(&published.root, Right::MigrateModels, Subject::Controller)?;
    Ok(Json(plan_migration(&published.root, &state.model().uuid)?))
}

/// Returns the users who were granted access to a model. Others than its administrators see themselves alone.
pub(crate) async fn users(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<Vec<ModelUser>>> {
    let (published, state) = readable(&durable, &who, &model)?;
    let all = who.may(&published.root, Right::AdministerModel, Subject::Model(&state));
    let mut users = model_users(&published.root, &state);
    let own = who.user()?;
    users.retain(|user| all || user.name == *own);
    Ok(Json(users))
}

pub(crate) async fn commands(
    State(durable): State<Durable>,
    State(submission): State<Submission>,
    who: RequestCaller,
    Path(model): Path<String>,
    headers: HeaderMap,
    content: Body,
) -> HandlerResult<Json<CommandResults<Answer>>> {
    let (_, state) = readable(&durable, &who, &model)?;
    let uuid = state.model().uuid;
    let commands = body::commands::<Command>(&submission, &headers, content).await?;
    let input = |command| Input::Model(uuid, command);
    Ok(Json(bulk::submit(&submission, QueueKey::Model(uuid), &who, commands, input, answer).await?))
}

pub(crate) async fn status(
    State(durable): State<Durable>,
    State(statuses): State<StatusSource>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<FullStatus>> {
    let (published, state) = readable(&durable, &who, &model)?;
    let uuid = state.model().uuid;
    let status = statuses
        .status_of(&published, &uuid)
        .ok_or_else(|| Refusal::not_found(format!("model {model} not found")))?;
    Ok(Json(status))
}

pub(crate) async fn storage(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<CombinedStorage>> {
    let (published, state) = readable(&durable, &who, &model)?;
    let storage = combined_storage(&published.root, &state.model().uuid)
        .ok_or_else(|| Refusal::not_found(format!("model {model} not found")))?;
    Ok(Json(storage))
}

pub(crate) async fn watch_status(
    State(durable): State<Durable>,
    State(streams): State<Streams>,
    State(statuses): State<StatusSource>,
    who: RequestCaller,
    Path(model): Path<String>,
    version: Version,
) -> HandlerResult<Response> {
    let (published, state) = readable(&durable, &who, &model)?;
    let permit = streams.limits.admit(StreamOf::Model(state.model().uuid), version)?;
    let stop = streams.stop;
    let watch = StatusWatch::new(&streams.watches, published, statuses, state.model().uuid);
    Ok(streams::encoded(
        permit,
        stream::unfold((watch, stop), |(mut watch, stop)| async move {
            watch.next(&stop).await.map(|line| (line, (watch, stop)))
        }),
    ))
}

pub(crate) async fn unit(
    State(durable): State<Durable>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    Path((model, application, number)): Path<(String, String, String)>,
) -> HandlerResult<Json<UnitDetails>> {
    let name: UnitName = parsed(&format!("{application}/{number}"))?;
    let (published, state) = readable(&durable, &who, &model)?;
    let hooks = records::newest(&*durable.records()?, &state.model().uuid, &name, SHOWN_HOOKS).await?;
    Ok(Json(show::unit(&published.root, &state, &name, hooks, clock.monotonic_ms())?))
}

pub(crate) async fn application(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path((model, application)): Path<(String, String)>,
) -> HandlerResult<Json<ApplicationDetails>> {
    let name: ApplicationName = parsed(&application)?;
    let (published, state) = readable(&durable, &who, &model)?;
    Ok(Json(show::application(&published.root, &state, &name)?))
}

pub(crate) async fn refresh_plan(
    State(durable): State<Durable>,
    State(clock): State<Arc<dyn Clock>>,
    who: RequestCaller,
    Path((model, application)): Path<(String, String)>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<RefreshPlan>> {
    let application: ApplicationName = parsed(&application)?;
    let mut query = Query::parse(query.as_deref())?;
    let charm = query.one("charm")?.ok_or_else(|| Refusal::bad_request("query charm is missing"))?;
    let request = RefreshRequest { application, charm, force: query.flag("force")? };
    query.end()?;
    let (published, state) = readable(&durable, &who, &model)?;
    // The result is not stored, so no id is drawn.
    let env = Environment { now: clock.now(), lease_now_ms: clock.monotonic_ms(), seed: [0; 16] };
    Ok(Json(plan_refresh(&published.root, &who.caller, &env, state.model().uuid, &request)?))
}

pub(crate) async fn machines(
    State(durable): State<Durable>,
    State(statuses): State<StatusSource>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<BTreeMap<String, MachineStatus>>> {
    let (published, state) = readable(&durable, &who, &model)?;
    let status = statuses.status_of(&published, &state.model().uuid);
    Ok(Json(status.map(|status| status.machines).unwrap_or_default()))
}

pub(crate) async fn config(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<ModelConfigDetails>> {
    let (_, state) = readable(&durable, &who, &model)?;
    Ok(Json(ModelConfigDetails::of(&state.model().settings, state.defaults())))
}

pub(crate) async fn constraints(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<Constraints>> {
    let (_, state) = readable(&durable, &who, &model)?;
    let model = state.model();
    Ok(Json(Constraints::of(
        &model.constraints,
        &model.kept_constraints,
        &model.settings.budgets,
        Limited::Both,
    )))
}

pub(crate) async fn usage(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<ModelUsage>> {
    let (_, state) = readable(&durable, &who, &model)?;
    Ok(Json(model_usage(&state)))
}

pub(crate) async fn ssh_keys(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<Vec<SshKey>>> {
    let (_, state) = readable(&durable, &who, &model)?;
    Ok(Json(state.model().ssh_keys.clone()))
}

pub(crate) async fn spaces(
    State(durable): State<Durable>,
    who: RequestCaller,
    Path(model): Path<String>,
) -> HandlerResult<Json<SpaceList>> {
    let (published, state) = readable(&durable, &who, &model)?;
    Ok(Json(periapt_model::spaces(&published.root, &state)))
}
