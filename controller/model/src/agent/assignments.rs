//! What an agent's keeper must know.

use std::collections::BTreeSet;

use periapt_host_api::{
    AgentName, CharmDigest,
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

fn assignment(state: &ModelState, agent: &AgentName) -> Option<ModelAssignment> {
    let mut charms: BTreeSet<CharmDigest> = BTreeSet::new();
    let mut units = 0;
    for unit in state.machines_of(agent).flat_map(|machine| state.units_on(&machine.id)) {
        units += 1;
        charms.extend(unit.record.charm.map(|charm| charm.digest));
        charms.extend(state.application(unit.name.application()).map(|found| found.charm.digest));
    }
    // Storage is deleted by a runner, also when it was the last that the agent had of the model.
    let to_delete = state.storages_at(agent).any(|storage| storage.is_to_be_deleted());
    (units > 0 || to_delete).then(|| ModelAssignment { charms: charms.into_iter().collect(), units })
}
