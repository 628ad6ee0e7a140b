//! The conversion of entities to their views.

use periapt_host_api::{
    AgentName, Digest, UnitMap,
    agent::Register,
    hash,
    resource::ResourceRevision,
    view::{
        ApplicationView, BagView, CharmView, MachineView, Membership, ModelView, RelationView, RemoteEnd,
        ResourceView, UnitOutline, UnitView,
    },
};

use crate::{
    entity::{Application, AttachedResource, Bag, CrossSide, Machine, Relation, Unit},
    network::firewall::ingress_rules,
    root::{ModelState, Root},
    status,
};

pub(super) fn model(state: &ModelState) -> ModelView {
    let model = state.model();
    ModelView {
        uuid: model.uuid,
        name: model.name.clone(),
        life: model.life,
        config: state.config().clone(),
        spaces: model.spaces.clone(),
    }
}

pub(super) fn application(state: &ModelState, application: &Application) -> ApplicationView {
    ApplicationView {
        name: application.name.clone(),
        life: application.life,
        charm: application.charm,
        force_charm: application.force_charm,
        config: application.config.clone(),
        config_hash: application.config_hash.clone(),
        settings_version: application.settings_version,
        trust_hash: application.trust_hash.clone(),
        trust: application.trust,
        bindings: application.bindings.clone(),
        bindings_hash: bindings_hash(state, application),
        leader: application.leader.clone(),
        leader_settings: application.leader_settings.clone(),
        leader_settings_version: application.leader_settings_version,
        update_status_interval: application.update_status_interval,
        status: application.status.clone(),
        exposed: application.exposed,
        budgets: application.budgets.clone(),
        resources: application
            .resources
            .iter()
            .map(|(name, attached)| (name.clone(), resource(attached)))
            .collect(),
    }
}

fn resource(attached: &AttachedResource) -> ResourceView {
    let ResourceRevision { revision, digest, size, .. } = attached.current;
    ResourceView { revision, digest, size }
}

/// Returns a hash that changes when the addresses of a binding change, even if the host's stay the same (D03).
fn bindings_hash(state: &ModelState, application: &Application) -> String {
    let (bindings, spaces) = (&application.bindings, &state.model().spaces);
    let egress = &state.config().egress_subnets;
    match (bindings.is_empty() && spaces.is_empty(), egress.is_empty()) {
        (true, true) => String::new(),
        (false, true) => hash::of_value(&(bindings, spaces)),
        (_, false) => hash::of_value(&(bindings, spaces, egress)),
    }
}

pub(super) fn charm(root: &Root, state: &ModelState, digest: &Digest) -> Option<CharmView> {
    let charm = root.charm(digest)?;
    Some(CharmView {
        digest: *digest,
        component: charm.component,
        revision: state.charm(digest)?.revision,
        meta: charm.meta.clone(),
    })
}

/// Returns the view of a unit, or none without a machine: no agent runs such a unit.
pub(super) fn unit(state: &ModelState, unit: &Unit) -> Option<UnitView> {
    Some(UnitView {
        name: unit.name.clone(),
        life: unit.life,
        machine: unit.machine?,
        principal: unit.principal.clone(),
        subordinates: state.subordinates_of(&unit.name).map(|unit| unit.name.clone()).collect(),
        resolved: unit.resolved,
        record: unit.record.clone(),
        early_number: unit.early_number,
        workload_status: unit.workload_status.clone(),
        agent_status: unit.agent_status.clone(),
    })
}

/// Returns the part of a unit that the leader and goal state see. The agent's connection is excluded: hooks may not
/// read it, and it changes without a commit.
pub(super) fn outline(unit: &Unit) -> UnitOutline {
    UnitOutline {
        name: unit.name.clone(),
        life: unit.life,
        workload_status: status::shown::with_hook_error(unit),
    }
}

pub(super) fn relation(relation: &Relation, members: UnitMap<Membership>) -> RelationView {
    RelationView {
        id: relation.id,
        endpoints: relation.endpoints.clone(),
        scope: relation.scope,
        life: relation.life,
        suspended: relation.suspended,
        state: relation.state(),
        state_since: relation.state_since.unwrap_or(relation.created_at),
        members,
        remote: relation.cross.as_ref().map(|cross| RemoteEnd {
            model: cross.other_model(),
            offer: match &cross.side {
                CrossSide::Consumer { url, .. } => Some(url.clone()),
                CrossSide::Offerer { .. } => None,
            },
        }),
        egress: relation.egress.clone(),
    }
}

pub(super) fn bag(bag: &Bag) -> BagView {
    BagView {
        key: bag.key.clone(),
        settings: bag.settings.clone(),
        version: bag.version,
        container: bag.container.clone(),
    }
}

/// The host of an agent. Its machines have the host's addresses.
pub(super) struct Host<'a> {
    agent: &'a AgentName,
    host: Option<&'a Register>,
    addresses_hash: String,
}

impl<'a> Host<'a> {
    pub(super) fn of(root: &'a Root, agent: &'a AgentName) -> Self {
        let host = root.agent(agent).map(|agent| &agent.host);
        let addresses_hash = match host.filter(|host| !host.interfaces.is_empty()) {
            Some(host) => hash::of_value(&(&host.addresses, &host.interfaces)),
            // The hash equals that of earlier releases, in which hosts did not report interfaces.
            None => hash::of_value(&host.map(|host| &host.addresses)),
        };
        Self { agent, host, addresses_hash }
    }

    pub(super) fn machine(&self, state: &ModelState, machine: &Machine) -> MachineView {
        let units = state.units_on(&machine.id).filter(|unit| !unit.ports.is_empty());
        MachineView {
            id: machine.id,
            agent: self.agent.clone(),
            boot_id: self.host.map(|host| host.boot_id.clone()).unwrap_or_default(),
            addresses: self.host.map(|host| host.addresses.clone()).unwrap_or_default(),
            interfaces: self.host.map(|host| host.interfaces.clone()).unwrap_or_default(),
            addresses_hash: self.addresses_hash.clone(),
            availability_zone: self.host.map(|host| host.availability_zone.clone()).unwrap_or_default(),
            ports: units.map(|unit| (unit.name.clone(), unit.ports.clone())).collect(),
            ingress: ingress_rules(state, &machine.id),
        }
    }
}
