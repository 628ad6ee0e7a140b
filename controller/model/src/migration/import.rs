//! The way in: a model from another controller comes page by page, hidden, and is taken over in one step.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, Timestamp,
    command::Answer,
    migration::{DELETING, HELD, ImportPage, ImportPlan, ImportedAgent, MAX_PLANNED, MIGRATION_SECONDS},
    status::Life,
};
use serde_json::Value;
use uuid::Uuid;

use super::{
    entity::{Import, Migration},
    outgoing::{full_leases, written},
    plan::listed,
};
use crate::{
    entity::{Agent, Enrolment, Entity, EntityKey, Model, ModelGrant, ModelKey},
    input::Environment,
    root::{
        ModelState, Root,
        changes::{Changes, RecordAppend, RecordBody},
    },
    transaction::check_size,
};

/// The time after which a model that came in part is given up: that of the whole migration, and a while for its last step.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(MIGRATION_SECONDS + 600);

/// Checks whether a model could be taken, and changes nothing.
pub(crate) fn check(root: &Root, plan: &ImportPlan, env: &Environment) -> Result<(Changes, Answer), Refusal> {
    let (_, answer) = begin(root, plan, env)?;
    let model = model_of(plan)?;
    match root.model_or_remains(&model.uuid).and_then(|state| state.migration()) {
        Some(Migration::Importing(import)) if import.given_up_at.is_some() => {
            let text = "what came of it in an earlier attempt is being deleted, which takes a minute";
            Err(refused(&model, ErrorCode::TryAgain, text))
        }
        _ => Ok((Changes::default(), answer)),
    }
}

fn refused(model: &Model, code: ErrorCode, reason: &str) -> Refusal {
    Refusal::new(code, format!("cannot take model {:?}: {reason}", model.name.as_str()))
        .about(format!("model {}", model.name))
}

/// Begins to take a model.
pub(crate) fn begin(root: &Root, plan: &ImportPlan, env: &Environment) -> Result<(Changes, Answer), Refusal> {
    let model = model_of(plan)?;
    let refused = |code: ErrorCode, reason: String| refused(&model, code, &reason);
    let conflict = |reason: String| refused(ErrorCode::Conflict, reason);
    if plan.level != root.level() {
        let (theirs, own) = (plan.level, root.level());
        return Err(refused(
            ErrorCode::NotSupported,
            format!(
                "its controller stores level {theirs}, and this one level {own}; upgrade the controllers to one \
                 release first"
            ),
        ));
    }
    if root.controller().is_some_and(|controller| controller.uuid == plan.source) {
        return Err(conflict("it is on this controller already".to_owned()));
    }
    if plan.agents.len() > MAX_PLANNED || plan.users.len() > MAX_PLANNED {
        return Err(conflict(format!("it has more than {MAX_PLANNED} agents or users")));
    }
    if let Some(known) = root.model_or_remains(&model.uuid) {
        match known.migration() {
            Some(Migration::Importing(import)) if import.id == plan.id && import.given_up_at.is_none() => {
                let next = if import.expires_at.is_none() { HELD } else { import.next_page };
                return Ok((Changes::default(), Answer::Import { next }));
            }
            // The other controller began anew, so it serves the model: what came of it before is of no use.
            Some(Migration::Importing(import)) if import.source == plan.source => {
                let mut changes = Changes::default();
                if import.given_up_at.is_none() {
                    let import = Import { given_up_at: Some(env.now), ..import.clone() };
                    changes = written(known, Some(Migration::Importing(import)));
                }
                return Ok((changes, Answer::Import { next: DELETING }));
            }
            Some(Migration::Moved(moved)) if moved.expires_at <= env.now => {
                let text = "what was left of it here is being deleted, which takes a minute";
                return Err(refused(ErrorCode::TryAgain, text.to_owned()));
            }
            Some(Migration::Moved(_)) => {
                return Err(conflict(
                    "it has moved away from this controller, which still tells where; end that with `migrate --forget` \
                     here first"
                        .to_owned(),
                ));
            }
            _ => return Err(conflict("this controller has a model with its UUID".to_owned())),
        }
    }
    if root.is_name_taken(&model.owner, &model.name) {
        let text = format!("user {} has a model of this name here already", model.owner);
        return Err(refused(ErrorCode::AlreadyExists, text));
    }
    let mut unknown = plan.users.iter().filter(|user| root.user(user).is_none()).peekable();
    if unknown.peek().is_some() {
        return Err(conflict(format!(
            "users who may use it are not known here: {}; add them here, or revoke their access there",
            listed(unknown)
        )));
    }
    let is_other = |known: &&periapt_host_api::migration::AgentKeyDigest| {
        let key = root.enrolment(&known.agent).map(|enrolment| enrolment.key);
        key.is_some_and(|key| key != Some(known.key)) || (key.is_none() && root.agent(&known.agent).is_some())
    };
    let mut others = plan.agents.iter().filter(is_other).map(|known| &known.agent).peekable();
    if others.peek().is_some() {
        return Err(conflict(format!(
            "agents with the names of its agents are here already: {}; an agent's name must be free here",
            listed(others)
        )));
    }
    let import = Import {
        id: plan.id,
        source: plan.source,
        since: env.now,
        next_page: 0,
        expires_at: Some(env.now.checked_add(GIVEN_UP_AFTER).unwrap_or(Timestamp::MAX)),
        given_up_at: None,
    };
    let uuid = model.uuid;
    let model = Model { migration: Some(Migration::Importing(import)), arrived: None, ..model };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::InModel(uuid, ModelKey::Model), Some(model.into()));
    Ok((changes, Answer::Import { next: 0 }))
}

/// Reads the model of a plan.
fn model_of(plan: &ImportPlan) -> Result<Model, Refusal> {
    match serde_json::from_value(plan.model.clone()) {
        Ok(Entity::Model(model)) if model.life == Life::Alive => Ok(Model::clone(&model)),
        Ok(_) => Err(Refusal::bad_request("the plan of a migration holds no model that is alive")),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Takes a page. One that has come already changes nothing.
pub(crate) fn page(root: &Root, page: &ImportPage, env: &Environment) -> Result<(Changes, Answer), Refusal> {
    let (state, import) = coming(root, &page.model, page.id)?;
    if page.number < import.next_page {
        return Ok((Changes::default(), Answer::Import { next: import.next_page }));
    }
    if page.number > import.next_page || import.expires_at.is_none() {
        let text = format!("page {} of a model came, and {} is expected", page.number, import.next_page);
        return Err(Refusal::conflict(text));
    }
    let next = import.next_page.saturating_add(1);
    let import = Import { next_page: next, ..import.clone() };
    let mut changes = written(state, Some(Migration::Importing(import)));
    for agent in &page.agents {
        if !root.models_at(&agent.agent).any(|(model, _)| *model == page.model) {
            let text = format!("agent {:?} has no machine or storage of the model", agent.agent.as_str());
            return Err(Refusal::bad_request(text));
        }
        add_agent(root, agent, env, &mut changes)?;
    }
    for value in &page.entities {
        let entity = entity(value)?;
        let key = entity.model_key().filter(|key| *key != ModelKey::Model);
        let key =
            key.ok_or_else(|| Refusal::bad_request("a page holds an entity of no model, or a model"))?;
        let entity = fitting(root, entity)?;
        changes.puts.insert(EntityKey::InModel(page.model, key), Some(entity));
    }
    for record in &page.records {
        let body: RecordBody =
            serde_json::from_value(record.body.clone()).map_err(|error| unreadable(&error))?;
        if matches!(body, RecordBody::Audit(_)) {
            return Err(Refusal::bad_request("the audit log belongs to no model"));
        }
        changes.records.push(RecordAppend {
            model: page.model,
            entity: record.entity.clone(),
            at: record.at,
            body,
        });
    }
    check_size(&changes)?;
    Ok((changes, Answer::Import { next }))
}

/// Adds an agent, unless it is known.
fn add_agent(
    root: &Root,
    imported: &ImportedAgent,
    env: &Environment,
    changes: &mut Changes,
) -> Result<(), Refusal> {
    let ImportedAgent { agent, key, host } = imported;
    match root.enrolment(agent).map(|enrolment| enrolment.key) {
        Some(known) if known == Some(*key) => {}
        None if root.agent(agent).is_none() => {
            let enrolment = Enrolment { agent: agent.clone(), key: Some(*key), token: None };
            changes.puts.insert(EntityKey::Enrolment(agent.clone()), Some(enrolment.into()));
        }
        _ => {
            let text = format!("an agent with the name {:?} is here already", agent.as_str());
            return Err(Refusal::conflict(text).about(format!("agent {agent}")));
        }
    }
    if root.agent(agent).is_none() {
        crate::agent::register::check(host)?;
        let known = Agent { name: agent.clone(), host: host.clone(), created_at: env.now };
        changes.puts.insert(EntityKey::Agent(agent.clone()), Some(known.into()));
    }
    Ok(())
}

/// Reads an entity.
pub(crate) fn entity(value: &Value) -> Result<Entity, Refusal> {
    serde_json::from_value(value.clone()).map_err(|error| unreadable(&error))
}

/// Returns an entity as it fits this controller. The grant of a user who is not known here has no effect.
fn fitting(root: &Root, entity: Entity) -> Result<Entity, Refusal> {
    let missing = |what: &str, digest: &periapt_host_api::Digest| {
        Refusal::conflict(format!("the {what} {} of the model was not uploaded", digest.short()))
    };
    match &entity {
        Entity::ModelGrant(grant) => {
            let user = root.user(&grant.user).filter(|_| !grant.user_uuid.is_nil());
            let user_uuid = user.map_or(Uuid::nil(), |user| user.uuid);
            Ok(ModelGrant { user_uuid, ..ModelGrant::clone(grant) }.into())
        }
        Entity::ModelCharm(charm) if root.charm(&charm.digest).is_none() => {
            Err(missing("charm", &charm.digest))
        }
        Entity::Application(application) => {
            if root.charm(&application.charm.digest).is_none() {
                return Err(missing("charm", &application.charm.digest));
            }
            let attached = application.resources.values().map(|resource| &resource.current.digest);
            match attached.into_iter().find(|digest| root.resource_content(digest).is_none()) {
                Some(digest) => Err(missing("content of a resource", digest)),
                None => Ok(entity),
            }
        }
        Entity::Offer(_) | Entity::RemoteApplication(_) => {
            Err(Refusal::bad_request("a model with offers or consumed offers does not migrate"))
        }
        _ => Ok(entity),
    }
}

/// Keeps a model that has come whole until the other controller says what becomes of it.
pub(crate) fn hold(
    root: &Root,
    model: &ModelUuid,
    id: Uuid,
    entities: u64,
) -> Result<(Changes, Answer), Refusal> {
    let (state, import) = coming(root, model, id)?;
    let have = u64::try_from(state.keys().count()).unwrap_or(u64::MAX);
    if have != entities {
        let text = format!("{have} entities of the model have come, and {entities} were sent");
        return Err(Refusal::conflict(text));
    }
    let import = Import { expires_at: None, ..import.clone() };
    Ok((written(state, Some(Migration::Importing(import))), Answer::Done))
}

/// Takes a model over. Its leaders get a full lease before another unit may claim, as after a restart.
pub(crate) fn activate(
    root: &Root,
    model: &ModelUuid,
    id: Uuid,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    // It was taken over by an earlier call. It may have moved on since, or be destroyed.
    if root.model_or_remains(model).is_some_and(|state| state.model().arrived == Some(id)) {
        return Ok((Changes::default(), Answer::Done));
    }
    let (state, import) = coming(root, model, id)?;
    if import.expires_at.is_some() {
        return Err(Refusal::conflict("the model has not come whole"));
    }
    let taken = Model { migration: None, arrived: Some(id), ..state.model().clone() };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::InModel(*model, ModelKey::Model), Some(taken.into()));
    changes.volatile.extend(full_leases(state, env));
    Ok((changes, Answer::Done))
}

/// Gives up a model that was not taken over. It is deleted step by step.
pub(crate) fn abort(
    root: &Root,
    model: &ModelUuid,
    id: Uuid,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    let (state, import) = coming(root, model, id)?;
    let import = Import { given_up_at: Some(env.now), ..import.clone() };
    Ok((written(state, Some(Migration::Importing(import))), Answer::Done))
}

/// Gives up a model that came in part. One that has come whole stays: another controller of the log may have handed it over.
pub(crate) fn abort_part(
    root: &Root,
    model: &ModelUuid,
    id: Uuid,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    if coming(root, model, id)?.1.expires_at.is_none() {
        let text = "the model has come whole";
        return Err(Refusal::new(ErrorCode::TryAgain, text).about(format!("model {model}")));
    }
    abort(root, model, id, env)
}

/// Returns a model that is on its way here in this migration.
fn coming<'a>(root: &'a Root, model: &ModelUuid, id: Uuid) -> Result<(&'a ModelState, &'a Import), Refusal> {
    let state = root.model_or_remains(model).filter(|state| state.is_coming());
    match state.map(|state| (state, state.migration())) {
        Some((state, Some(Migration::Importing(import)))) if import.id == id => Ok((state, import)),
        _ => Err(Refusal::not_found(format!("no migration {id} of model {model} is under way here"))),
    }
}

fn unreadable(error: &serde_json::Error) -> Refusal {
    Refusal::bad_request(format!("a part of a model cannot be read: {error}"))
}
