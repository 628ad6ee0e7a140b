//! The views of machines: those of the runner's agent.

use std::sync::Arc;

use periapt_host_api::view::MachineView;

use crate::{
    entity::Machine,
    network::firewall::{ingress_rules, unit_ingress_rules},
    view::{HasView, RunnerEntities},
};

impl HasView for Machine {
    type View = MachineView;

    fn beside<'a>(own: &RunnerEntities<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        own.state.machines_of(own.agent)
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<MachineView> {
        if self.agent != *own.agent {
            return None;
        }
        let (host, addresses_hash) = (own.host().reported, own.host().addresses_hash.clone());
        let units = own.state.units_on(&self.id).filter(|unit| !unit.ports.is_empty());
        Some(MachineView {
            id: self.id,
            agent: self.agent.clone(),
            boot_id: host.map(|host| host.boot_id.clone()).unwrap_or_default(),
            addresses: host.map(|host| host.addresses.clone()).unwrap_or_default(),
            interfaces: host.map(|host| host.interfaces.clone()).unwrap_or_default(),
            addresses_hash,
            availability_zone: host.map(|host| host.availability_zone.clone()).unwrap_or_default(),
            ports: units.map(|unit| (unit.name.clone(), unit.ports.clone())).collect(),
            ingress: ingress_rules(own.state, &self.id),
            unit_ingress: unit_ingress_rules(own.state, &self.id),
        })
    }
}
