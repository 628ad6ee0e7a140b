//! The facts of a model's view that calls between its units depend on, from the frames that the keeper forwards.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use periapt_host_api::{
    AgentName, ApplicationName, ModelName, UnitName,
    connections::{ConnectionTarget, RelatedApplications},
    egress::EgressGrants,
    firewall::IngressRules,
    view::{ApplicationView, FrameLine, UnitOutline, ViewEntity, ViewKey},
};

use super::open_ports::OpenPorts;
use crate::keeper::{ingress::WantedIngress, pods::PodStreams};

/// The most units of an application on this host that one call tries.
const MAX_TRIED_HERE: usize = 16;

/// The most units on other hosts that one call tries.
pub(super) const MAX_TRIED_THERE: usize = 4;

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
#[derive(Debug)]
pub(super) struct NeighbourFacts {
    /// The agent of this host.
    own: AgentName,
    told: Told,
    ingress: WantedIngress,
    /// The replacement from a full view whose last line has not arrived.
    coming: Option<Told>,
}

#[derive(Debug, Default, PartialEq)]
struct Told {
    model: Option<ModelName>,
    related: RelatedApplications,
    ports: OpenPorts,
    /// The destinations outside that the model grants to its workloads.
    egress: EgressGrants,
    /// The destinations that applications have of their own, in place of the model's.
    egress_of: BTreeMap<ApplicationName, EgressGrants>,
    /// The agents of units of the runner's applications and of related ones, of those on other hosts alone.
    agents: BTreeMap<UnitName, AgentName>,
}

impl NeighbourFacts {
    /// Creates the facts about a model without units.
    pub(super) fn new(own: AgentName) -> Self {
        Self { own, told: Told::default(), ingress: WantedIngress::default(), coming: None }
    }

    /// Records the changes of a frame's line. Returns true if they may end connections: each of these is judged again.
    pub(super) fn observe(&mut self, line: &FrameLine) -> bool {
        let rules_changed = !self.ingress.observe(line).is_empty();
        let coming = self.coming.take();
        if line.from.is_some() {
            return self.told.note(line, &self.own) | rules_changed;
        }
        let mut coming = coming.filter(|_| !line.is_first()).unwrap_or_default();
        coming.note(line, &self.own);
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

    /// Returns the agent on another host that runs a unit, if this agent's units may know of it.
    pub(super) fn agent_of(&self, unit: &UnitName) -> Option<&AgentName> {
        self.told.agents.get(unit)
    }

    /// Returns the units that a workload may mean. `addresses` are those of this host, which stand for each unit that has the
    /// port open. The cost does not depend on the number of units of an application.
    pub(super) fn meant(
        &self,
        asking: &UnitName,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        streams: &PodStreams,
    ) -> Meaning {
        let Some(model) = &self.told.model else { return Meaning::default() };
        let here = |here| Meaning { here, ..Meaning::default() };
        match ConnectionTarget::read(host, model) {
            Some(ConnectionTarget::Own) => here(vec![asking.clone()]),
            Some(ConnectionTarget::Unit(unit)) => match self.agent_of(&unit).cloned() {
                Some(agent) => Meaning { there: vec![(agent, unit)], ..Meaning::default() },
                None => here(vec![unit]),
            },
            Some(ConnectionTarget::Application(application)) => {
                let there = self.units_there(&application, asking).take(MAX_TRIED_THERE).collect();
                Meaning { here: streams.units_of(&application, MAX_TRIED_HERE), there, address: None }
            }
            Some(ConnectionTarget::Address(address)) => {
                let is_own = addresses.contains(&address);
                let here = if is_own { self.with_port(asking, port) } else { Vec::new() };
                let has_others = !self.told.agents.is_empty();
                Meaning { here, there: Vec::new(), address: has_others.then_some(address) }
            }
            None => Meaning::default(),
        }
    }

    /// Returns the units of an application on other hosts. Each caller begins with another one, so that not all call the first.
    fn units_there(
        &self,
        application: &ApplicationName,
        asking: &UnitName,
    ) -> impl Iterator<Item = (AgentName, UnitName)> {
        let unit = |number| UnitName::new(application.clone(), number);
        let agents = &self.told.agents;
        let last = agents.range(unit(0)..=unit(u32::MAX)).next_back();
        let numbers = last.map_or(1, |(last, _)| last.number().saturating_add(1));
        let first = unit(asking.number() % numbers);
        let behind = agents.range(first.clone()..=unit(u32::MAX));
        let units = behind.chain(agents.range(unit(0)..first));
        units.map(|(unit, agent)| (agent.clone(), unit.clone()))
    }

    /// Returns units that have a port open, first those of applications that are related to the asking unit's. The cost does
    /// not depend on the number of units.
    pub(super) fn with_port(&self, asking: &UnitName, port: u16) -> Vec<UnitName> {
        self.told.ports.with_port(asking, port, &self.told.related)
    }
}

impl Told {
    /// Records a line, and returns true if it may end connections. What only makes others possible does not.
    fn note(&mut self, line: &FrameLine, own: &AgentName) -> bool {
        let mut changed = false;
        for key in &line.deletes {
            match key {
                ViewKey::Relation(id) => changed |= self.related.remove(id),
                ViewKey::Machine(id) => self.ports.remove(*id),
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
                ViewEntity::Machine(machine) => self.ports.put(machine.id, &machine.ports),
                ViewEntity::Outline(UnitOutline { name, agent, .. }) => {
                    let agent = agent.as_ref().filter(|agent| *agent != own);
                    let before = match agent {
                        Some(agent) => self.agents.insert(name.clone(), agent.clone()),
                        None => self.agents.remove(name),
                    };
                    changed |= before.is_some_and(|before| Some(&before) != agent);
                }
                _ => {}
            }
        }
        changed
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{
        Timestamp,
        status::{Life, StatusInfo, WorkloadStatus},
    };

    use super::*;
    use crate::keeper::{
        neighbours::tests::model,
        tests::fake::{frame, unit},
    };

    fn outline(unit: &str, agent: &str) -> ViewEntity {
        ViewEntity::Outline(UnitOutline {
            name: unit.parse().unwrap(),
            life: Life::Alive,
            workload_status: StatusInfo::new(WorkloadStatus::Active, "", Timestamp::UNIX_EPOCH),
            agent: Some(agent.parse().unwrap()),
        })
    }

    #[tokio::test]
    async fn a_call_and_a_new_unit_concern_few_of_many_units_and_connections() {
        let mut facts = NeighbourFacts::new("here".parse().unwrap());
        let mut puts = vec![model()];
        puts.extend((0..10_000).map(|number| outline(&format!("app/{number}"), "here")));
        puts.extend((0..10_000).map(|number| outline(&format!("db/{number}"), "there")));
        facts.observe(&frame(None, 1, puts));
        assert_eq!(facts.told.agents.len(), 10_000, "units on other hosts alone");
        let streams = PodStreams::played(&"app/0".parse().unwrap(), |_| Err(String::new()));
        let meant = |asking: &str, host: &str| {
            let meaning = facts.meant(&asking.parse().unwrap(), host, 80, &[], &streams);
            meaning.there.iter().map(|(_, unit)| unit.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(meant("app/7", "db"), ["db/7", "db/8", "db/9", "db/10"]);
        assert_eq!(meant("app/9999", "db"), ["db/9999", "db/0", "db/1", "db/2"]);
        assert_eq!(meant("app/20000", "db"), ["db/0", "db/1", "db/2", "db/3"]);
        assert_eq!(meant("app/0", "app"), [""; 0], "they are all here");

        let mut ends = |puts| facts.observe(&frame(Some(1), 2, puts));
        assert!(!ends(vec![outline("db/10000", "there")]), "a new unit ends no connection");
        assert!(!ends(vec![outline("app/10000", "here")]));
        assert!(!ends(vec![unit("app/10000", Life::Alive), outline("db/1", "there")]));
        assert!(ends(vec![outline("db/10000", "third")]), "it has moved");
        assert!(ends(vec![outline("db/10000", "here")]));
    }
}
