//! The assignments of agents, which their keepers follow.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    AgentName, Digest,
    agent::{AgentAssignments, ModelAssignment},
    program::ProgramTarget,
};

use crate::{
    migration::status::moved_to,
    root::{ModelState, Root},
};

/// The number of agents that fetch a program in the same second: a program has some 40 MiB, and clients use the same
/// network.
const AGENTS_A_SECOND: usize = 5;

/// The most seconds within which all agents fetch a program. More than 9,000 agents are more in each second.
const MAX_ROLLOUT_SECONDS: u32 = 30 * 60;

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
        program_within: program_within(root),
        moved: moved_to(root, agent),
        logs: BTreeMap::new(),
        sessions: BTreeMap::new(),
    }
}

/// Returns the seconds within which all agents fetch the program that they are to run; 0 if there is none.
pub fn program_within(root: &Root) -> u32 {
    released_program(root).map_or(0, |_| rollout_seconds(root.agent_count()))
}

fn rollout_seconds(agents: usize) -> u32 {
    u32::try_from(agents / AGENTS_A_SECOND).unwrap_or(u32::MAX).min(MAX_ROLLOUT_SECONDS)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_agents_take_longer_up_to_half_an_hour() {
        let seconds = [0, 4, 5, 1_000, 9_000, usize::MAX].map(rollout_seconds);
        assert_eq!(seconds, [0, 0, 1, 200, 1_800, 1_800]);
    }
}
