//! The assignments of agents, which their keepers follow.

use std::collections::BTreeSet;

use periapt_host_api::{
    AgentName, Digest,
    agent::{AgentAssignments, ModelAssignment},
    program::ProgramTarget,
};

use crate::root::{ModelState, Root};

/// Returns an agent's models, with their units and charms. They include models and remains of which the agent only
/// has storage to delete. The addresses of controllers are in no model.
pub fn assignments(root: &Root, agent: &AgentName) -> AgentAssignments {
    let models =
        root.models_at(agent).filter_map(|(uuid, state)| Some((*uuid, assignment(state, agent)?))).collect();
    AgentAssignments {
        revision: root.revision(),
        models,
        addresses: Vec::new(),
        program: released_program(root).cloned(),
    }
}

/// Returns the program that agents are to run: the target, once all controllers run it.
pub fn released_program(root: &Root) -> Option<&ProgramTarget> {
    root.controller().and_then(|controller| controller.program.as_ref()).filter(|target| target.released)
}

/// Returns an agent's assignment for one model, or none if the agent has neither units nor storage to delete there.
pub fn assignment(state: &ModelState, agent: &AgentName) -> Option<ModelAssignment> {
    let wanted = state.applications_on(agent).filter_map(|name| state.application(name));
    let mut charms: BTreeSet<Digest> = wanted.map(|application| application.charm.digest).collect();
    charms.extend(state.charms_run_on(agent));
    let units = u32::try_from(state.unit_count_of(agent)).unwrap_or(u32::MAX);
    is_assigned(state, agent).then(|| ModelAssignment { charms: charms.into_iter().collect(), units })
}

/// Returns true if the agent has units or storage to delete in a model. A runner deletes storage, even if the agent has
/// no units of the model any more.
pub(crate) fn is_assigned(state: &ModelState, agent: &AgentName) -> bool {
    state.unit_count_of(agent) > 0 || state.storages_at(agent).any(|storage| storage.is_to_be_deleted())
}
