//! Summaries for lists.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use periapt_host_api::{
    AgentName, Timestamp,
    access::ModelAccess,
    command::{AgentSummary, Caller, ModelSummary},
};

use crate::{
    access::check::model_access,
    root::{ModelState, Root},
};

/// Returns the summary of a model for a caller who may see it.
pub fn model_summary(root: &Root, state: &ModelState, caller: &Caller) -> ModelSummary {
    let model = state.model();
    ModelSummary {
        uuid: model.uuid,
        name: model.name.clone(),
        owner: model.owner.clone(),
        life: model.life,
        life_since: model.life_since,
        created_at: model.created_at,
        access: model_access(root, state, caller).unwrap_or(ModelAccess::Read),
        applications: count(state.applications().count()),
        units: count(state.unit_count()),
        machines: count(state.machines().count()),
    }
}

/// Returns the summaries of all agents, by name. Machines and units are counted in the models that the caller sees.
pub fn agent_summaries<'a>(
    root: &Root,
    (now, lease_now_ms): (Timestamp, u64),
    seen: impl Iterator<Item = &'a Arc<ModelState>>,
) -> Vec<AgentSummary> {
    let mut counts: BTreeMap<&AgentName, (usize, usize)> = BTreeMap::new();
    for state in seen {
        let mut agents = BTreeSet::new();
        for machine in state.machines() {
            counts.entry(&machine.agent).or_default().0 += 1;
            agents.insert(&machine.agent);
        }
        for agent in agents {
            counts.entry(agent).or_default().1 += state.unit_count_of(agent);
        }
    }
    let summary = |agent: &crate::entity::Agent| {
        let (machines, units) = counts.get(&agent.name).copied().unwrap_or_default();
        AgentSummary {
            name: agent.name.clone(),
            alive: root.is_alive(&agent.name, lease_now_ms),
            addresses: agent.host.addresses.clone(),
            availability_zone: agent.host.availability_zone.clone(),
            tags: agent.host.tags.clone(),
            version: agent.host.version.clone(),
            program: agent.host.program.clone(),
            machines: count(machines),
            units: count(units),
            // An agent with an open connection was heard from just now: the server closes silent connections.
            last_seen: root
                .presence(&agent.name)
                .map(|presence| if presence.connected { now } else { presence.last_seen }),
        }
    };
    root.agents().map(summary).collect()
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
