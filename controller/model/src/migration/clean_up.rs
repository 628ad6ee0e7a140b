//! The end of what a migration leaves: of a model that has moved, or that came in part.

use periapt_host_api::{AgentName, ModelUuid, migration::MOVED_SECONDS};

use super::{
    entity::{Import, Migration, Moved},
    outgoing::{later, stays, written},
    plan::agents_of,
};
use crate::{
    entity::{Agent, EntityKey, ModelKey},
    input::Environment,
    root::{ModelState, Root, changes::Changes},
};

/// The most entities of a model that one step deletes. With each machine go two more, of its agent.
const STEP: usize = 30;

/// The seconds for which a note stays longer while an agent of its model is connected.
const AGAIN_AFTER_SECONDS: u64 = 86_400;

/// Does the next step.
pub(crate) fn step(root: &Root, uuid: &ModelUuid, env: &Environment) -> Changes {
    let Some(state) = root.model_or_remains(uuid) else { return Changes::default() };
    if state.migration_due().is_none_or(|due| due > env.now) {
        return Changes::default();
    }
    match state.migration() {
        Some(Migration::Exporting(export)) => stays(state, export, "it took longer than an hour", env),
        Some(Migration::Importing(import)) if import.given_up_at.is_none() => {
            let import = Import { given_up_at: Some(env.now), ..import.clone() };
            written(state, Some(Migration::Importing(import)))
        }
        Some(Migration::Moved(moved)) if ends_by_time(moved) && has_agents(root, state, env) => {
            let expires_at = later(env.now, AGAIN_AFTER_SECONDS);
            written(state, Some(Migration::Moved(Moved { expires_at, ..moved.clone() })))
        }
        Some(Migration::Moved(_)) => delete(root, uuid, state, |_| true),
        Some(Migration::Importing(Import { since, .. })) => {
            // An agent that was here before the model stays.
            delete(root, uuid, state, |agent| agent.created_at >= *since)
        }
        Some(Migration::HandedOver(_) | Migration::Failed(_)) | None => Changes::default(),
    }
}

/// Returns true if nobody forgot the model before its time.
fn ends_by_time(moved: &Moved) -> bool {
    moved.expires_at >= later(moved.since, MOVED_SECONDS)
}

/// Returns true if an agent of the model is still connected here: it cannot reach the other controller, and would lose its
/// way.
fn has_agents(root: &Root, state: &ModelState, env: &Environment) -> bool {
    agents_of(state).iter().any(|agent| root.is_alive(agent, env.lease_now_ms))
}

/// Deletes a part of a model, and the model with the last of it. Those of its agents go with their machines that belong to
/// another controller.
fn delete(root: &Root, uuid: &ModelUuid, state: &ModelState, goes: impl Fn(&Agent) -> bool) -> Changes {
    let mut changes = Changes::default();
    for key in state.keys().take(STEP) {
        let agent = match &key {
            ModelKey::Machine(id) => state.machine(id).map(|machine| machine.agent.clone()),
            ModelKey::Storage(id) => state.storage(id).and_then(|storage| storage.agent.clone()),
            _ => None,
        };
        let known = agent.as_ref().and_then(|agent| root.agent(agent));
        if let Some(agent) = known.filter(|agent| goes(agent) && belongs_to(root, &agent.name, uuid)) {
            for key in [EntityKey::Enrolment(agent.name.clone()), EntityKey::Agent(agent.name.clone())] {
                changes.puts.insert(key, None);
            }
        }
        changes.puts.insert(EntityKey::InModel(*uuid, key), None);
    }
    if changes.puts.is_empty() {
        changes.puts.insert(EntityKey::InModel(*uuid, ModelKey::Model), None);
    }
    changes
}

/// Returns true if an agent serves no other model.
fn belongs_to(root: &Root, agent: &AgentName, uuid: &ModelUuid) -> bool {
    root.models_at(agent).all(|(model, _)| model == uuid)
}
