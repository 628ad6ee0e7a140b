//! The routes `/v1/models/MODEL/secrets`, and the downloads of content by runners for their units.

use axum::{
    Json,
    extract::{Path, RawQuery, State},
};
use periapt_host_api::{
    AgentName, ModelUuid, Refusal, UnitName,
    api::{SecretDetails, SecretQuery},
    command::SecretSelector,
    secret::{SecretData, SecretId, SecretKey, SecretRevision},
};
use periapt_model::{
    ModelState, Right, Subject, entity::Secret, find_secret, secret_details, secret_for_admin,
    secret_for_unit,
};

use crate::{
    api::{caller::RequestCaller, failure::HandlerResult, find::parsed, models::readable, query::Query},
    seal::SecretSealer,
    state::Durable,
};

pub(crate) async fn list(
    State(durable): State<Durable>,
    State(sealer): State<SecretSealer>,
    who: RequestCaller,
    Path(model): Path<String>,
    RawQuery(query): RawQuery,
) -> HandlerResult<Json<Vec<SecretDetails>>> {
    let mut query = Query::parse(query.as_deref())?;
    let selector: Option<String> = query.one("secret")?;
    let asked = SecretQuery { reveal: query.flag("reveal")?, revision: query.one("revision")? };
    query.end()?;
    let (published, state) = readable(&durable, &who, &model)?;
    if asked.reveal {
        // Access to a model does not include its secrets (`docs/hook-model.md` 7.8).
        who.require(&published.root, Right::AdministerModel, Subject::Model(&state))?;
    }
    let secrets: Vec<&Secret> = match selector {
        Some(selector) => vec![find_secret(&state, &SecretSelector::from(selector.as_str()))?],
        None if asked.reveal || asked.revision.is_some() => {
            return Err(Refusal::bad_request("content is shown of one secret at a time").into());
        }
        None => state.secrets().map(AsRef::as_ref).collect(),
    };
    let mut all = Vec::with_capacity(secrets.len());
    for secret in secrets {
        all.push(details(&sealer, &state, secret, &asked)?);
    }
    Ok(Json(all))
}

fn details(
    sealer: &SecretSealer,
    state: &ModelState,
    secret: &Secret,
    asked: &SecretQuery,
) -> Result<SecretDetails, Refusal> {
    let mut details = secret_details(state, secret);
    let key = SecretKey { id: secret.id, revision: asked.revision.unwrap_or(secret.latest) };
    if asked.revision.is_some() || asked.reveal {
        let sealed = secret_for_admin(state, &key)?;
        if asked.reveal {
            details.content = Some(sealer.open(sealed)?);
        }
    }
    Ok(details)
}

pub(crate) async fn of_unit(
    State(durable): State<Durable>,
    State(sealer): State<SecretSealer>,
    who: RequestCaller,
    Path((agent, model, application, number, secret, revision)): Path<(
        String,
        String,
        String,
        String,
        String,
        String,
    )>,
) -> HandlerResult<Json<SecretData>> {
    let (agent, model): (AgentName, ModelUuid) = (parsed(&agent)?, parsed(&model)?);
    let caller = who.runner(&agent, model)?;
    let unit: UnitName = parsed(&format!("{application}/{number}"))?;
    let (id, revision): (SecretId, SecretRevision) = (parsed(&secret)?, parsed(&revision)?);
    let sealed = secret_for_unit(&durable.current().root, &caller, &unit, &SecretKey { id, revision })?;
    Ok(Json(sealer.open(sealed)?))
}
