//! Summaries for lists.

use periapt_host_api::{
    Timestamp,
    command::{AgentSummary, ModelSummary},
};

use crate::{
    machine::assign::units_of_agent,
    root::{ModelState, Root},
};

/// Returns the summary of a model.
pub fn model_summary(state: &ModelState) -> ModelSummary {
    let model = state.model();
    ModelSummary {
        uuid: model.uuid,
        name: model.name.clone(),
        owner: model.owner.clone(),
        life: model.life,
        life_since: model.life_since,
        created_at: model.created_at,
        applications: count(state.applications().count()),
        units: count(state.unit_count()),
        machines: count(state.machines().count()),
    }
}

/// Returns the summaries of all agents, by name.
pub fn agent_summaries(root: &Root, now: Timestamp) -> Vec<AgentSummary> {
    let summary = |agent: &crate::entity::Agent| AgentSummary {
        name: agent.name.clone(),
        alive: root.is_alive(&agent.name, now),
        addresses: agent.host.addresses.clone(),
        availability_zone: agent.host.availability_zone.clone(),
        tags: agent.host.tags.clone(),
        version: agent.host.version.clone(),
        machines: count(root.models().map(|(_, state)| state.machines_of(&agent.name).count()).sum()),
        units: count(units_of_agent(root, &agent.name)),
        // An agent with an open connection was heard from just now: the server closes silent connections.
        last_seen: root
            .presence(&agent.name)
            .map(|presence| if presence.connected { now } else { presence.last_seen }),
    };
    root.agents().map(summary).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
