//! The agents that an agent's units may connect to, and that may connect to them.

use std::collections::BTreeMap;

use periapt_host_api::{AgentName, agent::AgentPlace, command::Caller};

use super::RunnerEntities;
use crate::root::Root;

/// Returns the ways to the other agents with units that a runner's view outlines: those of its applications and of related
/// ones. Agents that have not joined are absent. It looks at these units alone, however large the model is.
pub fn peers(root: &Root, caller: &Caller) -> BTreeMap<AgentName, AgentPlace> {
    let Caller::Runner { agent, model } = caller else { return BTreeMap::new() };
    let Some(state) = root.model_or_remains(model) else { return BTreeMap::new() };
    let own = RunnerEntities::of(root, state, agent);
    let mut peers: BTreeMap<&AgentName, Option<AgentPlace>> = BTreeMap::new();
    for application in own.related_applications() {
        for other in state.units_of(&application).filter_map(|unit| state.agent_of(unit)) {
            if other != agent {
                peers.entry(other).or_insert_with(|| place(root, other));
            }
        }
    }
    peers.into_iter().filter_map(|(peer, place)| Some((peer.clone(), place?))).collect()
}

fn place(root: &Root, agent: &AgentName) -> Option<AgentPlace> {
    let key = root.enrolment(agent)?.key?;
    let host = &root.agent(agent)?.host;
    Some(AgentPlace { addresses: host.addresses.clone(), port: host.peer_port, key })
}
