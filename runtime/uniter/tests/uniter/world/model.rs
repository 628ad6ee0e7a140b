//! What happens in the model: the changes that a test makes.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, CharmDigest, EndpointName, LeaderTerm, MachineId, RelationId, Timestamp, UnitName,
    charm::{CharmMeta, EndpointMeta},
    command::ResolveMode,
    record::{CharmRef, UnitRecord},
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    settings::ModelConfig,
    status::{AgentStatus, Life, RelationState, StatusInfo, WorkloadStatus},
    view::{ApplicationView, BagView, CharmView, Leader, MachineView, Membership, RelationView, UnitView},
};

use super::World;

/// The version of the charm that asks for batches in all relations.
pub(crate) const BATCHING: u64 = 3;

fn batching_endpoints() -> BTreeMap<EndpointName, EndpointMeta> {
    let endpoint = |name: &str| {
        let meta = EndpointMeta {
            role: if name == "e0" { Role::Peer } else { Role::Requirer },
            interface: "any".parse().unwrap(),
            limit: None,
            scope: Scope::Global,
            optional: false,
            batch: true,
        };
        (name.parse().unwrap(), meta)
    };
    ["db", "e0", "e1", "e2"].map(endpoint).into()
}

impl World {
    pub(crate) fn put_application(&mut self, name: &str) {
        let name: ApplicationName = name.parse().unwrap();
        self.view.applications.insert(
            name.clone(),
            ApplicationView {
                name,
                life: Life::Alive,
                charm: charm(1),
                force_charm: false,
                config: BTreeMap::new(),
                config_hash: "config-1".to_owned(),
                settings_version: 0,
                trust_hash: "trust-1".to_owned(),
                trust: false,
                leader: None,
                leader_settings: BTreeMap::new(),
                leader_settings_version: 0,
                bindings: Default::default(),
                bindings_hash: String::new(),
                update_status_interval: None,
                status: None,
                exposed: false,
                budgets: periapt_host_api::budget::BudgetSettings::default(),
                resources: Default::default(),
            },
        );
    }

    pub(crate) fn put_unit(&mut self, name: &str) {
        let name: UnitName = name.parse().unwrap();
        self.view.units.insert(
            name.clone(),
            UnitView {
                name,
                life: Life::Alive,
                machine: MachineId(0),
                principal: None,
                subordinates: BTreeSet::new(),
                resolved: None,
                record: UnitRecord::default(),
                early_number: 0,
                workload_status: StatusInfo::new(WorkloadStatus::Unknown, "", self.now),
                agent_status: StatusInfo::new(AgentStatus::Allocating, "", self.now),
            },
        );
    }

    pub(crate) fn put_machine(&mut self, boot_id: &str, addresses_hash: &str) {
        let id = MachineId(0);
        self.view.machines.insert(
            id,
            MachineView {
                id,
                agent: "agent".parse().unwrap(),
                boot_id: boot_id.to_owned(),
                addresses: Vec::new(),
                interfaces: Vec::new(),
                ingress: Default::default(),
                addresses_hash: addresses_hash.to_owned(),
                availability_zone: String::new(),
                ports: BTreeMap::new(),
            },
        );
    }

    pub(crate) fn model_config(&mut self) -> &mut ModelConfig {
        &mut self.view.model.as_mut().unwrap().config
    }

    pub(crate) fn application(&mut self) -> &mut ApplicationView {
        self.view.applications.get_mut(&"a".parse::<ApplicationName>().unwrap()).unwrap()
    }

    pub(crate) fn me(&mut self) -> &mut UnitView {
        self.view.units.get_mut(&self.unit).unwrap()
    }

    pub(crate) fn record(&self) -> &UnitRecord {
        &self.view.units[&self.unit].record
    }

    /// The application is refreshed; its settings' hash covers the charm (U-35).
    pub(crate) fn want_charm(&mut self, version: u64, force: bool) {
        let reference = charm(version);
        self.application().charm = reference;
        self.application().force_charm = force;
        let settings = self.application().config_hash.split('/').next().unwrap().to_owned();
        self.application().config_hash = format!("{settings}/{version}");
        self.view.charms.insert(
            reference.digest,
            CharmView {
                digest: reference.digest,
                component: reference.digest,
                revision: version,
                meta: CharmMeta {
                    storage: BTreeMap::new(),
                    name: "a".to_owned(),
                    summary: String::new(),
                    description: String::new(),
                    subordinate: false,
                    endpoints: if version == BATCHING { batching_endpoints() } else { BTreeMap::new() },
                    extra_bindings: BTreeSet::new(),
                    resources: BTreeMap::new(),
                    options: BTreeMap::new(),
                    actions: BTreeMap::new(),
                    assumes: Default::default(),
                    grants: BTreeSet::new(),
                },
            },
        );
    }

    pub(crate) fn configure(&mut self, settings: &str) {
        let hash = &mut self.application().config_hash;
        let charm = hash.split_once('/').unwrap().1.to_owned();
        *hash = format!("{settings}/{charm}");
    }

    pub(crate) fn lead_by(&mut self, unit: &str) {
        self.terms += 1;
        self.application().leader =
            Some(Leader { unit: unit.parse().unwrap(), term: LeaderTerm(self.terms) });
    }

    /// The leader went or its lease lapsed, and no other unit's claim has been answered.
    pub(crate) fn lead_by_nobody(&mut self) {
        self.application().leader = None;
    }

    /// `own` is an endpoint of `a`; without a remote side it is a peer relation.
    pub(crate) fn relate(&mut self, id: u32, own: &str, remote: Option<&str>) {
        let endpoint = |application: &str, name: &str, role| Endpoint {
            application: application.parse().unwrap(),
            name: name.parse().unwrap(),
            role,
            interface: "interface".parse().unwrap(),
        };
        let endpoints = match remote {
            None => vec![endpoint("a", own, Role::Peer)],
            Some(remote) => {
                vec![endpoint("a", own, Role::Provider), endpoint(remote, "remote", Role::Requirer)]
            }
        };
        self.view.relations.insert(
            RelationId(id),
            RelationView {
                id: RelationId(id),
                endpoints,
                scope: Scope::Global,
                life: Life::Alive,
                suspended: false,
                state: RelationState::Joined,
                state_since: periapt_host_api::Timestamp::UNIX_EPOCH,
                remote: None,
                egress: Vec::new(),
                members: BTreeMap::new(),
            },
        );
    }

    pub(crate) fn relation(&mut self, id: u32) -> &mut RelationView {
        self.view.relations.get_mut(&RelationId(id)).unwrap()
    }

    pub(crate) fn is_member(&self, id: u32) -> bool {
        let relation = self.view.relations.get(&RelationId(id));
        relation.is_some_and(|relation| relation.members.contains_key(&self.unit))
    }

    /// A remote unit enters the scope, and has written its bag `writes` times.
    pub(crate) fn join(&mut self, id: u32, unit: &str, writes: u64) {
        let name: UnitName = unit.parse().unwrap();
        self.relation(id).members.insert(name.clone(), Membership::Joined);
        if writes > 0 {
            self.set_bag(id, BagOwner::Unit(name), writes);
        }
    }

    pub(crate) fn leave(&mut self, id: u32, unit: &str) {
        self.relation(id).members.remove(&unit.parse().unwrap());
    }

    /// A unit's or an application's bag gets this version.
    pub(crate) fn write(&mut self, id: u32, owner: &str, version: u64) {
        let owner = match owner.contains('/') {
            true => BagOwner::Unit(owner.parse().unwrap()),
            false => BagOwner::Application(owner.parse().unwrap()),
        };
        self.set_bag(id, owner, version);
    }

    /// The same, with one key in it.
    pub(crate) fn write_key(&mut self, id: u32, owner: &str, version: u64, key: &str, value: &str) {
        self.write(id, owner, version);
        let owner = BagOwner::Unit(owner.parse().unwrap());
        let bag = self.view.bags.get_mut(&BagKey { relation: RelationId(id), owner }).unwrap();
        bag.settings.insert(key.to_owned(), value.to_owned());
    }

    fn set_bag(&mut self, id: u32, owner: BagOwner, version: u64) {
        let key = BagKey { relation: RelationId(id), owner };
        self.view
            .bags
            .insert(key.clone(), BagView { key, settings: BTreeMap::new(), version, container: None });
    }

    /// Nobody is in the relation's scope any more. The unit sees it, dead, with its bags, until its record names it no
    /// more: so the controller has it (the laboratory's
    /// `u16_a_relation_that_was_removed_by_force_stays_dead_in_the_view_of_who_was_told_of_it`).
    pub(crate) fn remove_by_force(&mut self, id: u32) {
        let relation = self.relation(id);
        relation.life = Life::Dead;
        relation.state = RelationState::Dying;
        relation.members.clear();
        self.removed.insert(RelationId(id));
        self.forget_dead_relations();
    }

    /// A dead relation goes with the last record that names it.
    pub(super) fn forget_dead_relations(&mut self) {
        let remembered = self.view.units.get(&self.unit).map(|unit| unit.record.relations.clone());
        let forgotten = |id: &RelationId| !remembered.as_ref().is_some_and(|known| known.contains_key(id));
        let dead = self.view.relations.values().filter(|relation| relation.life == Life::Dead);
        let gone: Vec<RelationId> = dead.map(|relation| relation.id).filter(forgotten).collect();
        for id in gone {
            self.view.relations.remove(&id);
            let bags: Vec<_> = self.view.bags.keys().filter(|key| key.relation == id).cloned().collect();
            for key in bags {
                self.view.bags.remove(&key);
            }
        }
    }

    /// What the controller does when a unit is told to die.
    pub(crate) fn die(&mut self) {
        self.me().life = Life::Dying;
        let unit = self.unit.clone();
        let ids: Vec<_> = self.view.relations.keys().copied().collect();
        for id in ids {
            if let Some(membership) = self.view.relations[&id].members.clone().get(&unit) {
                assert_eq!(*membership, Membership::Joined);
                self.relation(id.0).members.insert(unit.clone(), Membership::Departing);
            }
        }
    }

    pub(crate) fn resolved(&mut self, mode: ResolveMode) {
        self.me().resolved = Some(mode);
    }

    pub(crate) fn advance(&mut self, seconds: i64) {
        self.now = Timestamp::from_second(self.now.as_second() + seconds).unwrap();
    }
}

/// A charm that is told apart by its version.
pub(crate) fn charm(version: u64) -> CharmRef {
    CharmRef { digest: CharmDigest::of(version.to_string().as_bytes()), modified_version: version }
}
