//! The end of what a migration leaves: of a model that has moved, or that came in part.

use periapt_host_api::{AgentName, ModelUuid};

use super::{
    entity::{Import, Migration},
    outgoing::{stays, written},
};
use crate::{
    entity::{EntityKey, ModelKey},
    input::Environment,
    root::{ModelState, Root, changes::Changes},
};

/// The most entities of a model that one step deletes. With each machine go two more, of its agent.
const STEP: usize = 30;

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
        Some(Migration::Importing(_) | Migration::Moved(_)) => delete(root, uuid, state),
        Some(Migration::HandedOver(_) | Migration::Failed(_)) | None => Changes::default(),
    }
}

/// Deletes a part of a model, and the model with the last of it. Its agents go with their machines: they belong to another
/// controller.
fn delete(root: &Root, uuid: &ModelUuid, state: &ModelState) -> Changes {
    let mut changes = Changes::default();
    for key in state.keys().take(STEP) {
        let agent = match &key {
            ModelKey::Machine(id) => state.machine(id).map(|machine| machine.agent.clone()),
            ModelKey::Storage(id) => state.storage(id).and_then(|storage| storage.agent.clone()),
            _ => None,
        };
        if let Some(agent) = agent.filter(|agent| belongs_to(root, agent, uuid)) {
            for key in [EntityKey::Enrolment(agent.clone()), EntityKey::Agent(agent)] {
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
