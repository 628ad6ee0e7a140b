//! The facts of a model's view that calls between its units depend on, from the frames that the keeper forwards.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc};

use periapt_host_api::{
    MachineId, ModelName, UnitName,
    connections::{ConnectionTarget, RelatedApplications},
    firewall::IngressRules,
    ports::{OpenedPorts, Transport},
    view::{FrameLine, ViewEntity, ViewKey},
};

use crate::keeper::{ingress::WantedIngress, pods::PodStreams};

/// The facts about one model's units on this host.
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

    /// Returns the units on this host that a workload may mean, in the order in which they are asked. `addresses` are those of
    /// the host, which stand for each unit that has the port open.
    pub(super) fn meant(
        &self,
        asking: &UnitName,
        host: &str,
        port: u16,
        addresses: &[IpAddr],
        streams: &PodStreams,
    ) -> Vec<UnitName> {
        let Some(model) = &self.told.model else { return Vec::new() };
        match ConnectionTarget::read(host, model) {
            Some(ConnectionTarget::Own) => vec![asking.clone()],
            Some(ConnectionTarget::Unit(unit)) => vec![unit],
            Some(ConnectionTarget::Application(application)) => streams.units_of(&application),
            Some(ConnectionTarget::Address(address)) if addresses.contains(&address) => {
                self.with_port(asking, port)
            }
            Some(ConnectionTarget::Address(_)) | None => Vec::new(),
        }
    }

    /// Returns the units that have a port open, first those of other applications that are related to the asking unit's: a unit
    /// reads their addresses in relations.
    fn with_port(&self, asking: &UnitName, port: u16) -> Vec<UnitName> {
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
                _ => {}
            }
        }
        for entity in &line.puts {
            match entity {
                ViewEntity::Model(model) => {
                    changed |= self.model.replace(model.name.clone()).as_ref() != Some(&model.name);
                }
                ViewEntity::Relation(relation) => changed |= self.related.put(relation),
                ViewEntity::Machine(machine) => {
                    let before = self.ports.insert(machine.id, machine.ports.clone());
                    changed |= before.as_ref() != Some(&machine.ports);
                }
                _ => {}
            }
        }
        changed
    }
}
