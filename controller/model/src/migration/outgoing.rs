//! The way out: a model is frozen, handed over and replaced by a note, or stays.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, Timestamp,
    command::Answer,
    migration::{MAX_AUTHORITY_BYTES, MIGRATION_SECONDS, MOVED_SECONDS, MigrationTarget},
    secret::Confidential,
    timing::{LEASE_AFTER_RESTART_MS, MAX_ADDRESSES},
};
use uuid::Uuid;

use super::{
    entity::{Export, Failed, Import, Migration, Moved},
    plan::{agents_of, plan_begun_migration, plan_migration},
};
use crate::{
    entity::{EntityKey, Model, ModelKey},
    input::Environment,
    root::{
        ModelState, Root,
        changes::{Changes, VolatileChange},
    },
};

/// The most bytes of a URL of the other controller.
const MAX_URL_BYTES: usize = 512;

/// The most bytes of the reason of a failure.
const MAX_REASON_BYTES: usize = 1_000;

/// The reason of a failure that an operator wanted.
const ENDED_BY_OPERATOR: &str = "an operator ended it";

/// Begins a migration: from now on the model takes no commands. One to the same controller that has begun goes on, with
/// another session there.
pub(crate) fn begin(
    root: &Root,
    uuid: ModelUuid,
    target: &MigrationTarget,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    let MigrationTarget { place, token } = target;
    if root.controller().is_some_and(|controller| controller.uuid == place.controller) {
        return Err(Refusal::bad_request("the model is on this controller already"));
    }
    let is_url = |url: &String| url.len() <= MAX_URL_BYTES && url.starts_with("https://");
    if place.addresses.is_empty()
        || place.addresses.len() > MAX_ADDRESSES
        || !place.addresses.iter().all(is_url)
    {
        let text = format!("1 to {MAX_ADDRESSES} URLs https://HOST:PORT of the other controller are needed");
        return Err(Refusal::bad_request(text));
    }
    if place.authority.is_empty() || place.authority.len() > MAX_AUTHORITY_BYTES {
        let text = format!("the certificate of an authority has 1 to {MAX_AUTHORITY_BYTES} bytes");
        return Err(Refusal::bad_request(text));
    }
    let Confidential::Sealed(token) = token.clone() else {
        return Err(Refusal::bad_request("the token was not encrypted"));
    };
    let state = known(root, &uuid)?;
    let renewed = |export: &Export| Export { target: place.clone(), token: token.clone(), ..export.clone() };
    let next = match state.migration() {
        // The session of the call before may have ended, and the other controller may have other addresses.
        Some(Migration::Exporting(export)) if export.target.controller == place.controller => {
            Migration::Exporting(renewed(export))
        }
        Some(Migration::HandedOver(export)) if export.target.controller == place.controller => {
            Migration::HandedOver(renewed(export))
        }
        _ => {
            plan_migration(root, &uuid)?;
            Migration::Exporting(Export {
                id: env.uuid(),
                target: place.clone(),
                token,
                since: env.now,
                expires_at: later(env.now, MIGRATION_SECONDS),
            })
        }
    };
    Ok((written(state, Some(next)), Answer::Done))
}

/// Hands a model over: from now on only the other controller's answer decides. The checks are made again, because agents
/// and the models beside this one were free to change.
pub(crate) fn hand_over(
    root: &Root,
    uuid: &ModelUuid,
    id: Uuid,
    env: &Environment,
) -> Result<Changes, Refusal> {
    let state = known(root, uuid)?;
    let export = match state.migration().filter(|migration| migration.is(id)) {
        Some(Migration::Exporting(export)) => export,
        Some(Migration::HandedOver(_)) => return Ok(Changes::default()),
        _ => return Err(ended(uuid)),
    };
    if export.expires_at <= env.now {
        return Err(ended(uuid));
    }
    plan_begun_migration(root, uuid, id)?;
    let export = Export { since: env.now, ..export.clone() };
    Ok(written(state, Some(Migration::HandedOver(export))))
}

/// Notes that the other controller has taken over.
pub(crate) fn moved(root: &Root, uuid: &ModelUuid, id: Uuid, env: &Environment) -> Result<Changes, Refusal> {
    let state = known(root, uuid)?;
    match state.migration() {
        Some(Migration::HandedOver(export)) if export.id == id => {
            let moved = Moved {
                id,
                target: export.target.clone(),
                since: env.now,
                expires_at: later(env.now, MOVED_SECONDS),
            };
            Ok(written(state, Some(Migration::Moved(moved))))
        }
        Some(Migration::Moved(moved)) if moved.id == id => Ok(Changes::default()),
        _ => Err(ended(uuid)),
    }
}

/// Ends a migration that the other controller or the way to it prevents: the model stays. Changes nothing once the model is
/// handed over.
pub(crate) fn failed(root: &Root, uuid: &ModelUuid, id: Uuid, reason: &str, env: &Environment) -> Changes {
    match root.model(uuid).map(|state| (state, state.migration())) {
        Some((state, Some(Migration::Exporting(export)))) if export.id == id => {
            stays(state, export, reason, env)
        }
        _ => Changes::default(),
    }
}

/// Ends a migration on the request of an operator, unless the other controller may have the model.
pub(crate) fn abort(root: &Root, uuid: &ModelUuid, env: &Environment) -> Result<(Changes, Answer), Refusal> {
    let state = known(root, uuid)?;
    let conflict = |text: &str| Err(Refusal::conflict(text).about(format!("model {}", state.model().name)));
    match state.migration() {
        Some(Migration::Exporting(export)) => {
            Ok((stays(state, export, ENDED_BY_OPERATOR, env), Answer::Done))
        }
        Some(Migration::HandedOver(export)) => conflict(&format!(
            "the model is handed over to the controller at {}, which takes it once it can be reached; use --force only if \
             that controller is lost for good: else two controllers would serve the model",
            export.target.addresses.join(", ")
        )),
        Some(Migration::Moved(moved)) => {
            Err(super::freeze::has_moved(state.model().name.as_str(), &moved.target))
        }
        Some(Migration::Failed(_)) | None => conflict("the model is not migrating"),
        Some(Migration::Importing(_)) => conflict(
            "the model comes from another controller: end its migration there; use --force here only if that controller \
             is lost for good or has the model: else nobody may have it any more",
        ),
    }
}

/// Ends a migration although the other controller may have the model, or may never be told: an operator says that it is
/// lost for good.
pub(crate) fn abort_by_force(
    root: &Root,
    uuid: &ModelUuid,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    let state = known(root, uuid)?;
    let changes = match state.migration() {
        Some(Migration::HandedOver(export)) => stays(state, export, ENDED_BY_OPERATOR, env),
        Some(Migration::Failed(failed)) if failed.untold.is_some() => told(state, failed),
        Some(Migration::Importing(import)) => {
            let given_up_at = import.given_up_at.or(Some(env.now));
            written(state, Some(Migration::Importing(Import { given_up_at, ..import.clone() })))
        }
        _ => return abort(root, uuid, env),
    };
    Ok((changes, Answer::Done))
}

/// Notes that the other controller gives up what has come of a model that stays.
pub(crate) fn abort_told(root: &Root, uuid: &ModelUuid, id: Uuid) -> Changes {
    // Also of the remains of a model that was destroyed meanwhile.
    match root.model_or_remains(uuid).map(|state| (state, state.migration())) {
        Some((state, Some(Migration::Failed(failed)))) if failed.id == id && failed.untold.is_some() => {
            told(state, failed)
        }
        _ => Changes::default(),
    }
}

fn told(state: &ModelState, failed: &Failed) -> Changes {
    written(state, Some(Migration::Failed(Failed { untold: None, ..failed.clone() })))
}

/// Refuses to forget a model while an agent of it may not have learnt yet where it has gone.
pub(crate) fn check_agents_have_gone(
    root: &Root,
    uuid: &ModelUuid,
    env: &Environment,
) -> Result<(), Refusal> {
    let state = known(root, uuid)?;
    let here = agents_of(state).into_iter().find(|agent| root.is_alive(agent, env.lease_now_ms));
    let Some(agent) = here.filter(|_| state.has_moved()) else { return Ok(()) };
    let text = format!(
        "agent {:?} of the model was connected here a moment ago, and might not learn where to go; try again in half a \
         minute, or use --force",
        agent.as_str()
    );
    Err(Refusal::conflict(text).about(format!("model {}", state.model().name)))
}

/// Forgets a model that has moved. The rest of it is deleted step by step.
pub(crate) fn forget(root: &Root, uuid: &ModelUuid, env: &Environment) -> Result<(Changes, Answer), Refusal> {
    let state = known(root, uuid)?;
    let Some(Migration::Moved(moved)) = state.migration() else {
        let text = format!("model {:?} has not moved", state.model().name.as_str());
        return Err(Refusal::conflict(text).about(format!("model {uuid}")));
    };
    let moved = Moved { expires_at: moved.expires_at.min(env.now), ..moved.clone() };
    Ok((written(state, Some(Migration::Moved(moved))), Answer::Done))
}

/// Returns the changes that let a model stay: it is served as ever, and the other controller is yet to be told.
pub(super) fn stays(state: &ModelState, export: &Export, reason: &str, env: &Environment) -> Changes {
    let end = reason.floor_char_boundary(MAX_REASON_BYTES);
    let reason = reason.get(..end).unwrap_or_default().to_owned();
    let failed = Failed { id: export.id, at: env.now, reason, untold: Some(Box::new(export.clone())) };
    let mut changes = written(state, Some(Migration::Failed(failed)));
    changes.volatile.extend(full_leases(state, env));
    changes
}

/// Returns a full lease for each leader of a model: nobody could renew one while the model was frozen.
pub(super) fn full_leases<'a>(
    state: &'a ModelState,
    env: &Environment,
) -> impl Iterator<Item = VolatileChange> + use<'a> {
    let expires_ms = Some(env.lease_now_ms.saturating_add(LEASE_AFTER_RESTART_MS));
    let led = state.applications().filter(|application| application.leader.is_some());
    led.map(move |application| VolatileChange::Lease {
        model: state.model().uuid,
        application: application.name.clone(),
        expires_ms,
    })
}

/// Returns a model, hidden ones and the remains of destroyed ones included.
pub(super) fn known<'a>(root: &'a Root, uuid: &ModelUuid) -> Result<&'a ModelState, Refusal> {
    let state = root.model_or_remains(uuid);
    state.map(AsRef::as_ref).ok_or_else(|| Refusal::not_found(format!("model {uuid} not found")))
}

/// Returns the changes that give a model another state of its migration.
pub(super) fn written(state: &ModelState, migration: Option<Migration>) -> Changes {
    let model = Model { migration, ..state.model().clone() };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::InModel(model.uuid, ModelKey::Model), Some(model.into()));
    changes
}

fn ended(uuid: &ModelUuid) -> Refusal {
    Refusal::new(ErrorCode::Conflict, "the migration has ended").about(format!("model {uuid}"))
}

/// Returns a time so many seconds later.
pub(super) fn later(now: Timestamp, seconds: u64) -> Timestamp {
    now.checked_add(Duration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}
