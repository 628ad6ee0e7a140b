//! The data of `show-unit`.

use periapt_host_api::{
    EndpointName, Refusal, UnitName,
    api::{UnitBag, UnitDetails, UnitRelation},
    journal::JournalRecord,
    relation::{BagKey, BagOwner, Endpoint, Scope, Settings},
    status::Life,
};
use periapt_model::{
    ModelState, Root,
    entity::{Relation, Unit},
    shown_workloads,
};

use super::CharmLabel;

/// Returns the details of a unit, with its relations and newest hooks.
pub(crate) fn unit(
    root: &Root,
    state: &ModelState,
    name: &UnitName,
    journal: Vec<JournalRecord>,
    lease_now_ms: u64,
) -> Result<UnitDetails, Refusal> {
    let unknown = || Refusal::not_found(format!("unit {name:?} not found")).about(format!("unit {name}"));
    let unit = state.unit(name).ok_or_else(unknown)?;
    let application = state.application(name.application()).ok_or_else(unknown)?;
    let charm = unit.record.charm.unwrap_or(application.charm).digest;
    let agent = state.agent_of(unit);
    let (containers, taken_ports) = shown_workloads(root, state, unit, lease_now_ms);
    let host = agent.and_then(|agent| root.agent(agent)).map(|agent| &agent.host);
    Ok(UnitDetails {
        name: name.clone(),
        application: application.name.clone(),
        life: unit.life,
        charm: CharmLabel::of(root, state, &charm).url(),
        charm_digest: charm,
        leader: application.leader.as_ref().is_some_and(|leader| leader.unit == *name),
        machine: unit.machine,
        agent: agent.cloned(),
        address: host.and_then(|host| host.addresses.first().cloned()),
        principal: unit.principal.clone(),
        subordinates: state.subordinates_of(name).map(|unit| unit.name.clone()).collect(),
        opened_ports: unit.ports.clone(),
        workload_version: application.workload_version.clone(),
        workload_status: unit.workload_status.clone(),
        agent_status: unit.agent_status.clone(),
        resolved: unit.resolved,
        record: unit.record.clone(),
        pending_events: state.events_of(name).map(|pending| pending.events.clone()).unwrap_or_default(),
        relations: relations(state, unit),
        journal,
        containers,
        taken_ports,
    })
}

fn relations(state: &ModelState, unit: &Unit) -> Vec<UnitRelation> {
    let alive = state.relations_of(unit.name.application()).filter(|found| found.life != Life::Dead);
    alive.filter_map(|found| relation(state, unit, found)).collect()
}

fn relation(state: &ModelState, unit: &Unit, relation: &Relation) -> Option<UnitRelation> {
    let own: &Endpoint = relation.end_of(unit.name.application())?;
    let other = relation.other_end(unit.name.application())?;
    let endpoint_of = |end: &Endpoint| -> EndpointName { end.name.clone() };
    let here = state.units_of(&other.application);
    let here = here.filter(|candidate| candidate.name != unit.name && sees(relation, unit, candidate));
    // The model only knows the units of another model that are in the relation.
    let remote = state.members(&relation.id).map(|(name, _)| name);
    let remote = remote.filter(|name| relation.is_remote(name.application()));
    let related = here.map(|candidate| &candidate.name).chain(remote);
    let related = related.map(|name| (name.clone(), unit_bag(state, relation, name))).collect();
    Some(UnitRelation {
        relation_id: relation.id,
        endpoint: endpoint_of(own),
        related_endpoint: endpoint_of(other),
        related_application: other.application.clone(),
        interface: other.interface.clone(),
        application_data: bag(state, relation, BagOwner::Application(other.application.clone())),
        local_unit: unit_bag(state, relation, &unit.name),
        related_units: related,
        cross_model: relation.cross.is_some(),
    })
}

/// Returns true if a unit sees the other unit in the relation.
fn sees(relation: &Relation, unit: &Unit, other: &Unit) -> bool {
    match relation.scope {
        Scope::Global => true,
        Scope::Container => {
            unit.principal.as_ref() == Some(&other.name) || other.principal.as_ref() == Some(&unit.name)
        }
    }
}

fn unit_bag(state: &ModelState, relation: &Relation, unit: &UnitName) -> UnitBag {
    UnitBag {
        in_scope: state.membership(&relation.id, unit).is_some(),
        data: bag(state, relation, BagOwner::Unit(unit.clone())),
    }
}

fn bag(state: &ModelState, relation: &Relation, owner: BagOwner) -> Settings {
    let key = BagKey { relation: relation.id, owner };
    state.bag(&key).map(|bag| bag.settings.clone()).unwrap_or_default()
}
