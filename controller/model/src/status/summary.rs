//! Summaries for lists.

use periapt_host_api::{
    Timestamp,
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
pub fn agent_summaries(
    root: &Root,
    (now, lease_now_ms): (Timestamp, u64),
    seen: &dyn Fn(&ModelState) -> bool,
) -> Vec<AgentSummary> {
    let summary = |agent: &crate::entity::Agent| {
        let models = || {
            let models = root.models_at(&agent.name).map(|(_, state)| state);
            models.filter(|state| !state.is_remains() && seen(state))
        };
        AgentSummary {
            name: agent.name.clone(),
            alive: root.is_alive(&agent.name, lease_now_ms),
            addresses: agent.host.addresses.clone(),
            availability_zone: agent.host.availability_zone.clone(),
            tags: agent.host.tags.clone(),
            version: agent.host.version.clone(),
            machines: count(models().map(|state| state.machines_of(&agent.name).count()).sum()),
            units: count(models().map(|state| state.unit_count_of(&agent.name)).sum()),
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
