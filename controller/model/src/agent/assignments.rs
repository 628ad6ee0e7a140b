//! What an agent's keeper must know.

use std::collections::BTreeSet;

use periapt_host_api::{
    AgentName, Digest,
    agent::{AgentAssignments, ModelAssignment},
};

use crate::root::{ModelState, Root};

/// The models with units on an agent, or with storage that it has to delete, also of those that are gone, and the charms
/// that these run or are to run.
pub fn assignments(root: &Root, agent: &AgentName) -> AgentAssignments {
    let models = root.models_and_remains();
    let models = models.filter_map(|(uuid, state)| Some((*uuid, assignment(state, agent)?))).collect();
    AgentAssignments { revision: root.revision(), models }
}

/// The same of one model; none: the agent has nothing to do with it.
pub fn assignment(state: &ModelState, agent: &AgentName) -> Option<ModelAssignment> {
    let wanted = state.applications_on(agent).filter_map(|name| state.application(name));
    let mut charms: BTreeSet<Digest> = wanted.map(|application| application.charm.digest).collect();
    charms.extend(state.charms_run_on(agent));
    let units = u32::try_from(state.unit_count_of(agent)).unwrap_or(u32::MAX);
    // Storage is deleted by a runner, also when it was the last that the agent had of the model.
    let to_delete = state.storages_at(agent).any(|storage| storage.is_to_be_deleted());
    (units > 0 || to_delete).then(|| ModelAssignment { charms: charms.into_iter().collect(), units })
}
