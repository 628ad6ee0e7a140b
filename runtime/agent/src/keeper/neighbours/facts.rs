//! The facts of a model's view that calls between its units depend on, from the frames that the keeper forwards.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use periapt_host_api::{
    AgentName, ApplicationName, MachineId, ModelName, UnitName,
    connections::{ConnectionTarget, RelatedApplications},
    egress::EgressGrants,
    firewall::IngressRules,
    ports::{OpenedPorts, Transport},
    view::{ApplicationView, FrameLine, UnitOutline, ViewEntity, ViewKey},
};

use crate::keeper::{ingress::WantedIngress, pods::PodStreams};

/// The units that a workload may mean, in the order in which they are asked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Meaning {
    /// Units on this host.
    pub(super) here: Vec<UnitName>,
    /// Units on other hosts.
    pub(super) there: Vec<(AgentName, UnitName)>,
    /// An address of which other agents may have units.
    pub(super) address: Option<IpAddr>,
}

/// The facts about one model's units on this host, and the places of those that they may connect to.
#[derive(Debug, Default)]
pub(super) struct NeighbourFacts {
    told: Told,
    ingress: WantedIngress,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Told>,
}

#[derive(Debug, Default, PartialEq)]
struct Told {
    model: Option<ModelName>,
    related: RelatedApplications,
    ports: BTreeMap<MachineId, BTreeMap<UnitName, Vec<OpenedPorts>>>,
    /// The destinations outside that the model grants to its workloads.
    egress: EgressGrants,
    /// The destinations that applications have of their own, in place of the model's.
    egress_of: BTreeMap<ApplicationName, EgressGrants>,
    /// The agents of units of the runner's applications and of related ones.
    agents: BTreeMap<UnitName, AgentName>,
}

impl NeighbourFacts {
    /// Records the changes of a frame's line. Returns true if connections may be admitted or refused otherwise.
    pub(super) fn observe(&mut self, line: &FrameLine) -> bool {
        let rules_changed = !self.ingress.observe(line).is_empty();
        let coming = self.coming.take();
        if line.from.is_some() {
            return self.told.note(line) | rules_changed;
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line);
        if !line.is_last() {
            self.coming = Some(coming);
            return rules_changed;
        }
        let changed = self.told != coming;
        self.told = coming;
        changed | rules_changed
    }

    /// Returns the applications that are related.
    pub(super) fn related(&self) -> &RelatedApplications {
        &self.told.related
    }

    /// Returns the ingress rules of a unit.
    pub(super) fn rules(&self, unit: &UnitName) -> Option<Arc<IngressRules>> {
        self.ingress.rules(unit)
    }

    /// Returns the destinations outside that the workloads of an application may connect to.
    pub(super) fn egress(&self, application: &ApplicationName) -> &EgressGrants {
        self.told.egress_of.get(application).unwrap_or(&self.told.egress)
    }

    /// Returns the agent that runs a unit, if this agent's units may know of it.
    pub(super) fn agent_of(&self, unit: &UnitName) -> Option<&AgentName> {
        self.told.agents.get(unit)
    }

    /// Returns the units that a workload on the agent `own` may mean. `addresses` are those of this host, which stand for each
    /// unit that has the port open.
    pub(super) fn meant(
        &self,
        (own, asking): (&AgentName, &UnitName),
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        streams: &PodStreams,
    ) -> Meaning {
        let Some(model) = &self.told.model else { return Meaning::default() };
        let here = |here| Meaning { here, ..Meaning::default() };
        let elsewhere = |unit: &UnitName| self.agent_of(unit).filter(|agent| *agent != own).cloned();
        match ConnectionTarget::read(host, model) {
            Some(ConnectionTarget::Own) => here(vec![asking.clone()]),
            Some(ConnectionTarget::Unit(unit)) => match elsewhere(&unit) {
                Some(agent) => Meaning { there: vec![(agent, unit)], ..Meaning::default() },
                None => here(vec![unit]),
            },
            Some(ConnectionTarget::Application(application)) => {
                let [first, last] = [0, u32::MAX].map(|number| UnitName::new(application.clone(), number));
                let units = self.told.agents.range(first..=last).map(|(unit, _)| unit);
                let there = units.filter_map(|unit| Some((elsewhere(unit)?, unit.clone()))).collect();
                Meaning { here: streams.units_of(&application), there, address: None }
            }
            Some(ConnectionTarget::Address(address)) => {
                let is_own = addresses.contains(&address);
                let here = if is_own { self.with_port(asking, port) } else { Vec::new() };
                let has_others = self.told.agents.values().any(|agent| agent != own);
                Meaning { here, there: Vec::new(), address: has_others.then_some(address) }
            }
            None => Meaning::default(),
        }
    }

    /// Returns the units that have a port open, first those of other applications that are related to the asking unit's: a unit
    /// reads their addresses in relations.
    pub(super) fn with_port(&self, asking: &UnitName, port: u16) -> Vec<UnitName> {
        let has = |opened: &OpenedPorts| {
            let ports = opened.range.ports();
            ports.is_some_and(|(of, first, last)| of == Transport::Tcp && (first..=last).contains(&port))
        };
        let all = self.told.ports.values().flatten();
        let mut units: Vec<UnitName> =
            all.filter(|(_, opened)| opened.iter().any(has)).map(|(unit, _)| unit.clone()).collect();
        let is_related =
            |unit: &UnitName| self.told.related.are_related(asking.application(), unit.application());
        units.sort_by_key(|unit| !is_related(unit));
        units
    }
}

impl Told {
    /// Records a line, and returns true if it changes anything.
    fn note(&mut self, line: &FrameLine) -> bool {
        let mut changed = false;
        for key in &line.deletes {
            match key {
                ViewKey::Relation(id) => changed |= self.related.remove(id),
                ViewKey::Machine(id) => changed |= self.ports.remove(id).is_some(),
                ViewKey::Outline(unit) => changed |= self.agents.remove(unit).is_some(),
                ViewKey::Application(name) => changed |= self.egress_of.remove(name).is_some(),
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Model(model) => {
                    changed |= self.model.replace(model.name.clone()).as_ref() != Some(&model.name);
                    let egress = &model.config.workload_egress;
                    changed |= std::mem::replace(&mut self.egress, egress.clone()) != *egress;
                }
                ViewEntity::Application(ApplicationView { name, workload_egress, .. }) => {
                    let before = match workload_egress {
                        Some(own) => self.egress_of.insert(name.clone(), own.clone()),
                        None => self.egress_of.remove(name),
                    };
                    changed |= before != *workload_egress;
                }
                ViewEntity::Relation(relation) => changed |= self.related.put(relation),
                ViewEntity::Machine(machine) => {
                    let before = self.ports.insert(machine.id, machine.ports.clone());
                    changed |= before.as_ref() != Some(&machine.ports);
                }
                ViewEntity::Outline(UnitOutline { name, agent: Some(agent), .. }) => {
                    changed |= self.agents.insert(name.clone(), agent.clone()).as_ref() != Some(agent);
                }
                ViewEntity::Outline(UnitOutline { name, agent: None, .. }) => {
                    changed |= self.agents.remove(name).is_some();
                }
                _ => {}
            }
        }
        changed
    }
}
