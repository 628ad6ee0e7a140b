//! The intended firewall rules of each machine (`docs/hook-model.md` 7.3): the open ports of its units, if their
//! applications are exposed or consumed by other models.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    MachineId, UnitName,
    command::Exposure,
    firewall::IngressRules,
    network::{Spaces, Subnet},
    ports::OpenedPorts,
    settings::FirewallMode,
    status::Life,
};

use crate::{
    entity::{Application, CrossModelSide, Unit},
    root::ModelState,
};

/// Returns the ingress rules of a machine's firewall.
pub fn ingress_rules(state: &ModelState, machine: &MachineId) -> IngressRules {
    match state.config().firewall_mode {
        FirewallMode::Instance => rules_for(state, state.units_on(machine).map(AsRef::as_ref)),
        // F-2: a rule stays while any unit needs it.
        FirewallMode::Global => {
            let placed = state.units().filter(|unit| unit.machine.is_some());
            rules_for(state, placed.map(AsRef::as_ref))
        }
        FirewallMode::None => IngressRules::new(),
    }
}

/// Returns the ingress rules of each unit on a machine that has any.
pub(crate) fn unit_ingress_rules(
    state: &ModelState,
    machine: &MachineId,
) -> BTreeMap<UnitName, IngressRules> {
    let units = state.units_on(machine).filter(|unit| !unit.ports.is_empty());
    let rules = units.map(|unit| (unit.name.clone(), rules_of_unit(state, unit)));
    rules.filter(|(_, rules)| !rules.is_empty()).collect()
}

/// Returns the ingress rules of one unit. Its agent forwards connections by them, so a mode that opens ports of other
/// machines adds nothing.
pub(crate) fn rules_of_unit(state: &ModelState, unit: &Unit) -> IngressRules {
    match state.config().firewall_mode {
        FirewallMode::Instance | FirewallMode::Global => rules_for(state, std::iter::once(unit)),
        FirewallMode::None => IngressRules::new(),
    }
}

/// Returns the ingress rules of some units.
fn rules_for<'a>(state: &ModelState, units: impl Iterator<Item = &'a Unit>) -> IngressRules {
    let mut rules = IngressRules::new();
    for unit in units {
        let Some(application) = state.application(unit.name.application()) else { continue };
        for opened in &unit.ports {
            let mut from = consumers(state, application, opened);
            if application.exposed {
                from.extend(sources(application, &state.model().spaces, opened));
            }
            if !from.is_empty() {
                rules.entry(opened.range).or_default().extend(from);
            }
        }
    }
    rules
}

/// Returns the subnets of the other models' units that are related to the endpoints of an open range. They have
/// access even if the application is not exposed.
fn consumers(state: &ModelState, application: &Application, opened: &OpenedPorts) -> BTreeSet<Subnet> {
    let mut subnets = BTreeSet::new();
    for relation in state.relations_of(&application.name) {
        let Some(CrossModelSide::Offerer { ingress }) = relation.cross.as_ref().map(|cross| &cross.side)
        else {
            continue;
        };
        let own = relation.end_of(&application.name).map(|end| &end.name);
        let is_for_it = opened.endpoints.is_empty() || own.is_some_and(|own| opened.endpoints.contains(own));
        if relation.life == Life::Alive && !relation.suspended && is_for_it {
            subnets.extend(ingress.iter().copied());
        }
    }
    subnets
}

/// Returns the subnets that may reach one open range. A range opened for all endpoints is reachable from the sources
/// of every exposure. For named endpoints, an endpoint's own exposure replaces the general one.
fn sources(application: &Application, spaces: &Spaces, opened: &OpenedPorts) -> BTreeSet<Subnet> {
    if application.exposures.is_empty() {
        return Subnet::EVERYWHERE.into();
    }
    let of = |endpoint: &str| application.exposures.get(endpoint).or_else(|| application.exposures.get(""));
    let entries: Vec<&Exposure> = match opened.endpoints.is_empty() {
        true => application.exposures.values().collect(),
        false => opened.endpoints.iter().filter_map(|endpoint| of(endpoint.as_str())).collect(),
    };
    entries.into_iter().flat_map(|exposure| subnets(exposure, spaces)).collect()
}

fn subnets(exposure: &Exposure, spaces: &Spaces) -> BTreeSet<Subnet> {
    if exposure.cidrs.is_empty() && exposure.spaces.is_empty() {
        return Subnet::EVERYWHERE.into();
    }
    // A removed space, or one without subnets, gives no rule.
    let of_spaces = exposure.spaces.iter().filter_map(|space| spaces.0.get(space)).flatten();
    exposure.cidrs.iter().chain(of_spaces).copied().collect()
}
