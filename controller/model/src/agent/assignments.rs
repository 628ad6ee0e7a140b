//! The assignments of agents, which their keepers follow.

use std::collections::BTreeSet;

use periapt_host_api::{
    AgentName, Digest,
    agent::{AgentAssignments, ModelAssignment},
};

use crate::root::{ModelState, Root};

/// Returns an agent's models, with their units and charms. They include models and remains of which the agent only
/// has storage to delete.
pub fn assignments(root: &Root, agent: &AgentName) -> AgentAssignments {
    let models = root.models_and_remains();
    let models = models.filter_map(|(uuid, state)| Some((*uuid, assignment(state, agent)?))).collect();
    AgentAssignments { revision: root.revision(), models }
}

/// Returns an agent's assignment for one model, or none if the agent has neither units nor storage to delete there.
pub fn assignment(state: &ModelState, agent: &AgentName) -> Option<ModelAssignment> {
    let wanted = state.applications_on(agent).filter_map(|name| state.application(name));
    let mut charms: BTreeSet<Digest> = wanted.map(|application| application.charm.digest).collect();
    charms.extend(state.charms_run_on(agent));
    let units = u32::try_from(state.unit_count_of(agent)).unwrap_or(u32::MAX);
    // A runner deletes storage, even if the agent has no units of the model any more.
    let to_delete = state.storages_at(agent).any(|storage| storage.is_to_be_deleted());
    (units > 0 || to_delete).then(|| ModelAssignment { charms: charms.into_iter().collect(), units })
}
