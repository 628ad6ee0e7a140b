//! The index of models by agent: no request looks at every model to find those of an agent.

use std::sync::Arc;

use imbl::OrdMap;
use periapt_host_api::{AgentName, ModelUuid};

use super::{ModelState, Root};
use crate::entity::ModelKey;

/// The models of each agent. Agents without models have no entry.
#[derive(Debug, Clone, Default)]
pub(super) struct HostIndex(OrdMap<AgentName, Host>);

/// The models of one agent.
#[derive(Debug, Clone, Default)]
struct Host {
    /// The models in which the agent has machines or storage, remains included, with the number of its units in each.
    models: OrdMap<ModelUuid, usize>,
    /// The number of its units in all models.
    units: usize,
}

/// Returns the agent whose machine or storage the entity under a key is, or is on.
pub(super) fn agent_of(state: &ModelState, key: &ModelKey) -> Option<AgentName> {
    match key {
        ModelKey::Machine(id) => state.machine(id).map(|machine| machine.agent.clone()),
        ModelKey::Unit(name) => state.agent_of(state.unit(name)?).cloned(),
        ModelKey::Storage(id) => state.storage(id)?.agent.clone(),
        _ => None,
    }
}

impl HostIndex {
    /// Notes what an agent has in a model now.
    pub(super) fn update(&mut self, agent: &AgentName, uuid: ModelUuid, state: Option<&Arc<ModelState>>) {
        let hosts = |state: &&Arc<ModelState>| {
            state.machines_of(agent).next().is_some() || state.storages_at(agent).next().is_some()
        };
        let units = state.filter(hosts).map(|state| state.unit_count_of(agent));
        let before = self.0.get(agent).and_then(|host| host.models.get(&uuid)).copied();
        if before == units {
            return;
        }
        let host = self.0.entry(agent.clone()).or_default();
        let others = host.units.saturating_sub(before.unwrap_or_default());
        host.units = others.saturating_add(units.unwrap_or_default());
        match units {
            Some(units) => host.models.insert(uuid, units),
            None => host.models.remove(&uuid),
        };
        if host.models.is_empty() {
            self.0.remove(agent);
        }
    }

    /// Removes a model that is removed with its entities.
    pub(super) fn forget(&mut self, uuid: ModelUuid, state: &ModelState) {
        let machines = state.machines().map(|machine| &machine.agent);
        let storages =
            state.storages().chain(state.forgotten_storages()).filter_map(|storage| storage.agent.as_ref());
        for agent in machines.chain(storages) {
            self.update(agent, uuid, None);
        }
    }
}

impl Root {
    /// Returns the models in which an agent has machines or storage, and the remains of destroyed ones.
    pub(crate) fn models_at(
        &self,
        agent: &AgentName,
    ) -> impl Iterator<Item = (&ModelUuid, &Arc<ModelState>)> {
        let models = self.hosts.0.get(agent).into_iter().flat_map(|host| host.models.keys());
        models.filter_map(|uuid| self.models.get_key_value(uuid)).inspect(|_| super::looks::note())
    }

    /// Returns true if an agent goes with a model that migrates, has moved, or comes.
    pub(crate) fn is_going(&self, agent: &AgentName) -> bool {
        let Some(host) = self.hosts.0.get(agent) else { return false };
        let is_frozen = |model: &ModelUuid| self.models.get(model).is_some_and(|state| state.is_frozen());
        // The fewer ones are gone through.
        match host.models.len() < self.migrating.len() {
            true => host.models.keys().any(|model| self.migrating.contains(model) && is_frozen(model)),
            false => self.migrating.iter().any(|model| host.models.contains_key(model) && is_frozen(model)),
        }
    }

    /// Returns the number of an agent's units in all models.
    pub(crate) fn unit_count_at(&self, agent: &AgentName) -> usize {
        self.hosts.0.get(agent).map_or(0, |host| host.units)
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        command::{Caller, ControllerCommand},
        timing::FAILOVER_AFTER,
    };

    use super::super::{
        large::{FEW, Large, MODELS},
        looks,
    };
    use crate::{
        Input, WorkSchedule, WorkerCommand, agent_summaries, assignments, due_work, readable_models,
    };

    #[test]
    fn what_concerns_one_agent_costs_looks_at_its_own_models_alone() {
        let mut controller = Large::new();
        let few: periapt_host_api::AgentName = "few".parse().unwrap();
        controller.work(WorkerCommand::AgentDisconnected(few.clone()));
        controller.env.lease_now_ms = u64::try_from(FAILOVER_AFTER.as_millis()).unwrap();
        let Large { root, env, .. } = &controller;
        let due = looks::count(|| drop(due_work(root, env.now, env.lease_now_ms, &WorkSchedule::default())));
        assert_eq!(due, FEW, "due work while an agent is gone");
        assert_eq!(looks::count(|| drop(assignments(root, &few))), FEW, "assignments");
        let admin = Caller::User("admin".parse().unwrap());
        let now = (env.now, env.lease_now_ms);
        let all = looks::count(|| drop(agent_summaries(root, now, readable_models(root, &admin))));
        assert_eq!(all, MODELS, "summaries of all agents count machines and units of each model");
        let remove = ControllerCommand::RemoveAgent { agent: few.clone(), force: true };
        let remove = Input::Controller(remove);
        let removed = looks::count(|| controller.ask(&admin, &remove).unwrap());
        assert_eq!(removed, FEW, "the removal of an agent");
    }
}
