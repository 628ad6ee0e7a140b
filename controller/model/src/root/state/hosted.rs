//! Counts of what each agent hosts of a model, so that no query iterates over all units.

use imbl::OrdMap;
use periapt_host_api::{AgentName, ApplicationName, Digest, RelationId};

use super::ModelState;
use crate::entity::{Machine, Unit};

/// The agents that host units.
#[derive(Debug, Clone, Default)]
pub(super) struct Hosted(OrdMap<AgentName, Host>);

/// The counts of one agent.
#[derive(Debug, Clone, Default)]
struct Host {
    units: usize,
    applications: Counts<ApplicationName>,
    charms: Counts<Digest>,
    relations: Counts<RelationId>,
}

/// The number of units for each key. Keys with a count of zero are removed.
#[derive(Debug, Clone)]
struct Counts<K: Ord>(OrdMap<K, usize>);

impl<K: Ord> Default for Counts<K> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<K: Ord + Clone> Counts<K> {
    fn add(&mut self, key: &K) {
        match self.0.get_mut(key) {
            Some(count) => *count += 1,
            None => drop(self.0.insert(key.clone(), 1)),
        }
    }

    fn take(&mut self, key: &K) {
        match self.0.get_mut(key) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(self.0.remove(key)),
        }
    }
}

impl Hosted {
    fn add(&mut self, agent: &AgentName, unit: &Unit) {
        let host = self.0.entry(agent.clone()).or_default();
        host.units += 1;
        host.applications.add(unit.name.application());
        if let Some(charm) = &unit.record.charm {
            host.charms.add(&charm.digest);
        }
        unit.record.relations.keys().for_each(|id| host.relations.add(id));
    }

    fn take(&mut self, agent: &AgentName, unit: &Unit) {
        let Some(host) = self.0.get_mut(agent) else { return };
        host.units = host.units.saturating_sub(1);
        host.applications.take(unit.name.application());
        if let Some(charm) = &unit.record.charm {
            host.charms.take(&charm.digest);
        }
        unit.record.relations.keys().for_each(|id| host.relations.take(id));
        if host.units == 0 {
            self.0.remove(agent);
        }
    }
}

/// Returns true if two states of a unit add the same to the counts.
fn counts_alike(one: &Unit, other: &Unit) -> bool {
    let digest = |unit: &Unit| unit.record.charm.map(|charm| charm.digest);
    let (before, after) = (&one.record.relations, &other.record.relations);
    one.machine == other.machine && digest(one) == digest(other) && before.keys().eq(after.keys())
}

/// Replaces a unit's old state by its new one in the counts of its machine's agent.
pub(super) fn unit_changed(state: &mut ModelState, old: Option<&Unit>, new: Option<&Unit>) {
    if old.zip(new).is_some_and(|(old, new)| counts_alike(old, new)) {
        return;
    }
    let agent = |unit: &Unit| Some(&state.tables.machines.find(&unit.machine?)?.agent);
    if let Some((agent, old)) = old.and_then(|old| Some((agent(old)?, old))) {
        state.derived.hosted.take(agent, old);
    }
    if let Some((agent, new)) = new.and_then(|new| Some((agent(new)?, new))) {
        state.derived.hosted.add(agent, new);
    }
}

/// Moves the units on a machine to the counts of its new agent. Units on a removed machine count for no agent.
pub(super) fn machine_changed(state: &mut ModelState, old: Option<&Machine>, new: Option<&Machine>) {
    if old.map(|machine| &machine.agent) == new.map(|machine| &machine.agent) {
        return;
    }
    let Some(id) = new.or(old).map(|machine| machine.id) else { return };
    for unit in state.derived.units_on.get(&id).filter_map(|name| state.tables.units.find(name)) {
        if let Some(old) = old {
            state.derived.hosted.take(&old.agent, unit);
        }
        if let Some(new) = new {
            state.derived.hosted.add(&new.agent, unit);
        }
    }
}

impl ModelState {
    /// Returns the number of units on an agent's machines.
    pub fn unit_count_of(&self, agent: &AgentName) -> usize {
        self.derived.hosted.0.get(agent).map_or(0, |host| host.units)
    }

    /// Returns the applications with units on an agent's machines, by name.
    pub(crate) fn applications_on(&self, agent: &AgentName) -> impl Iterator<Item = &ApplicationName> {
        self.derived.hosted.0.get(agent).into_iter().flat_map(|host| host.applications.0.keys())
    }

    /// Returns true if an application has a unit on an agent's machines.
    pub(crate) fn has_units_on(&self, agent: &AgentName, application: &ApplicationName) -> bool {
        self.derived.hosted.0.get(agent).is_some_and(|host| host.applications.0.contains_key(application))
    }

    /// Returns the charms that units on an agent's machines run.
    pub(crate) fn charms_run_on(&self, agent: &AgentName) -> impl Iterator<Item = &Digest> {
        self.derived.hosted.0.get(agent).into_iter().flat_map(|host| host.charms.0.keys())
    }

    /// Returns true if the record of a unit on an agent's machines still has a relation.
    pub(crate) fn is_remembered_on(&self, agent: &AgentName, relation: &RelationId) -> bool {
        self.derived.hosted.0.get(agent).is_some_and(|host| host.relations.0.contains_key(relation))
    }

    /// Returns true if any unit's record still has a relation.
    pub(crate) fn is_remembered(&self, relation: &RelationId) -> bool {
        self.derived.hosted.0.values().any(|host| host.relations.0.contains_key(relation))
    }

    /// Returns true if any unit runs a charm.
    pub(crate) fn runs_charm(&self, digest: &Digest) -> bool {
        self.derived.hosted.0.values().any(|host| host.charms.0.contains_key(digest))
    }
}
