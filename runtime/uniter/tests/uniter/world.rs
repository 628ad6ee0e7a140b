//! A world of one unit, `a/0`: its view, which a test changes at will, and the part of the controller that applies
//! what the unit commits.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ApplicationName, CharmDigest, LeaderTerm, MachineId, RelationId, Revision, Timestamp, UnitName,
    charm::CharmMeta,
    command::ResolveMode,
    commit::EarlyEffect,
    event::Event,
    record::{CharmRef, UnitRecord},
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    settings::ModelConfig,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    view::{
        ApplicationView, BagView, CharmView, Leader, MachineView, Membership, ModelView, RelationView,
        UnitView, View,
    },
};
use periapt_uniter::{
    Decision, DeployRun, HookEnd, HookRun, Jitter, Progress, before_hook, deploy_failed, deployed,
    hook_ended, idle_effect, resolve,
};

/// How many steps a unit may take to settle: many times more than any test needs.
const MAX_STEPS: usize = 500;

pub(crate) struct World {
    pub(crate) view: View,
    pub(crate) unit: UnitName,
    pub(crate) now: Timestamp,
    /// What was run since it was last looked at, as text.
    trace: Vec<String>,
    /// Every event that was committed, by a run or by being skipped.
    pub(crate) committed: Vec<Event>,
    /// Which of these were passed over because their relation is gone.
    pub(crate) passed_over: Vec<usize>,
    /// Relations that were removed by force; their ids are never used again.
    pub(crate) removed: BTreeSet<RelationId>,
    /// Statuses that were set, newest last.
    pub(crate) statuses: Vec<String>,
    /// Hooks that fail, by name; `deploy` for bringing a charm into place.
    pub(crate) failing: BTreeSet<String>,
    /// Hooks in which the charm sets a status.
    pub(crate) setting_status: BTreeSet<String>,
}

/// Lets the world settle and compares the hooks that ran since the last look.
#[track_caller]
pub(crate) fn check(world: &mut World, expected: &[&str]) -> Decision {
    let rest = world.settle();
    assert_eq!(world.take_trace(), expected);
    rest
}

impl World {
    /// A new unit that leads its application, without relations.
    pub(crate) fn new() -> Self {
        let now = "2026-01-01T00:00:00Z".parse().unwrap();
        let unit: UnitName = "a/0".parse().unwrap();
        let mut world = Self {
            view: View { revision: Revision(1), ..View::default() },
            unit: unit.clone(),
            now,
            trace: Vec::new(),
            committed: Vec::new(),
            passed_over: Vec::new(),
            removed: BTreeSet::new(),
            statuses: Vec::new(),
            failing: BTreeSet::new(),
            setting_status: BTreeSet::new(),
        };
        world.view.model = Some(ModelView {
            uuid: "00000000-0000-0000-0000-000000000001".parse().unwrap(),
            name: "test".parse().unwrap(),
            life: Life::Alive,
            config: ModelConfig::default(),
        });
        world.put_application("a");
        world.put_machine("boot-1", "addresses-1");
        world.put_unit("a/0");
        world.want_charm(1, false);
        world.lead_by("a/0");
        world
    }

    /// The same unit, started and at rest.
    pub(crate) fn started() -> Self {
        let mut world = Self::new();
        check(&mut world, &["deploy 1", "install", "leader-elected", "config-changed", "start"]);
        world
    }

    // What happens in the model.

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
                trust_hash: "trust-1".to_owned(),
                trust: false,
                leader: None,
                leader_settings: BTreeMap::new(),
                leader_settings_version: 0,
                status: None,
                exposed: false,
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
                    name: "a".to_owned(),
                    summary: String::new(),
                    description: String::new(),
                    subordinate: false,
                    endpoints: BTreeMap::new(),
                    extra_bindings: BTreeSet::new(),
                    options: BTreeMap::new(),
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
        let leader = self.application().leader.take();
        let term = leader.map_or_else(Default::default, |leader| leader.term);
        let term = LeaderTerm(term.0 + 1);
        self.application().leader = Some(Leader { unit: unit.parse().unwrap(), term });
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

    fn set_bag(&mut self, id: u32, owner: BagOwner, version: u64) {
        let key = BagKey { relation: RelationId(id), owner };
        self.view.bags.insert(key.clone(), BagView { key, settings: BTreeMap::new(), version });
    }

    pub(crate) fn remove_by_force(&mut self, id: u32) {
        let id = RelationId(id);
        self.view.relations.remove(&id);
        self.removed.insert(id);
        let bags: Vec<_> = self.view.bags.keys().filter(|key| key.relation == id).cloned().collect();
        for key in bags {
            self.view.bags.remove(&key);
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

    // What the agent does.

    pub(crate) fn decide(&self) -> Decision {
        let decision = resolve(&self.view, &self.unit, self.now);
        assert_eq!(decision, resolve(&self.view, &self.unit, self.now), "the same input, another answer");
        decision
    }

    /// The hook that is due.
    #[track_caller]
    pub(crate) fn due(&self) -> HookRun {
        match self.decide() {
            Decision::RunHook(run) => *run,
            other => panic!("no hook is due: {other:?}"),
        }
    }

    /// Takes one step; the decision is given back if nothing was to be done.
    pub(crate) fn step(&mut self) -> Option<Decision> {
        match self.decide() {
            Decision::RunHook(run) => self.run(&run),
            Decision::Deploy(run) => self.deploy(&run),
            Decision::Commit(progress) => self.apply(*progress),
            rest => return Some(rest),
        }
        None
    }

    /// Takes steps until nothing is to be done.
    #[track_caller]
    pub(crate) fn settle(&mut self) -> Decision {
        for _ in 0..MAX_STEPS {
            if let Some(rest) = self.step() {
                if matches!(rest, Decision::Idle { .. }) {
                    let effect = idle_effect(&self.view, &self.unit);
                    self.tell(effect);
                    assert_eq!(idle_effect(&self.view, &self.unit), None);
                }
                return rest;
            }
        }
        panic!("it never settles: {:?}", self.trace);
    }

    fn run(&mut self, run: &HookRun) {
        let name = run.event.hook_name();
        self.tell(before_hook(run));
        let status_set = self.setting_status.contains(&name);
        let failed = self.failing.contains(&name);
        let end = match failed {
            true => HookEnd::Failed { message: "broken".to_owned(), status_set },
            false => HookEnd::Handled { status_set },
        };
        self.trace.push(text(&run.event) + if failed { " FAILED" } else { "" });
        self.end(run, end);
    }

    pub(crate) fn end(&mut self, run: &HookRun, end: HookEnd) {
        if !matches!(end, HookEnd::Failed { .. }) {
            self.committed.push(run.event.clone());
        }
        self.apply(hook_ended(run, end, self.now, Jitter::NONE));
    }

    fn deploy(&mut self, run: &DeployRun) {
        let version = run.charm.modified_version;
        if self.failing.contains("deploy") {
            self.trace.push(format!("deploy {version} FAILED"));
            self.apply(deploy_failed(run, "no room", self.now, Jitter::NONE));
        } else {
            self.trace.push(format!("deploy {version}"));
            self.apply(deployed(run));
        }
    }

    pub(crate) fn take_trace(&mut self) -> Vec<String> {
        std::mem::take(&mut self.trace)
    }

    // What the controller does with a commit.

    fn apply(&mut self, progress: Progress) {
        let before = self.record().clone();
        assert_eq!(progress.record.seq, before.seq + 1, "a commit is one step");
        if let Some(event) = progress.skipped {
            self.trace.push(format!("{} skipped", text(&event)));
            let gone = |relation: RelationId| !self.view.relations.contains_key(&relation);
            let by_operator = progress.transitions.clear_resolved;
            if !by_operator && event.relation().is_some_and(|context| gone(context.relation)) {
                self.passed_over.push(self.committed.len());
            }
            self.committed.push(event);
        }
        self.me().record = progress.record;
        self.tell(progress.early);
        let unit = self.unit.clone();
        for id in progress.transitions.enter_scope {
            let relation = self.relation(id.0);
            assert_eq!(relation.life, Life::Alive, "R-9");
            assert!(relation.members.insert(unit.clone(), Membership::Joined).is_none(), "entered twice");
        }
        for id in progress.transitions.leave_scope {
            assert!(self.relation(id.0).members.remove(&unit).is_some(), "left without having been in");
        }
        if progress.transitions.clear_resolved {
            assert!(self.me().resolved.take().is_some(), "nothing to clear");
        }
        if progress.transitions.terminate {
            assert!(self.me().subordinates.is_empty(), "Q05");
            self.view.units.remove(&unit);
        }
        self.view.revision = Revision(self.view.revision.0 + 1);
    }

    fn tell(&mut self, effects: impl IntoIterator<Item = EarlyEffect>) {
        for effect in effects {
            match effect {
                EarlyEffect::UnitStatus { status, message } => {
                    self.statuses.push(format!("{status} {message}").trim_end().to_owned());
                    self.me().workload_status = StatusInfo::new(status, message, self.now);
                }
                EarlyEffect::AgentStatus { status, message, data } => {
                    self.statuses.push(format!("agent {status} {message}").trim_end().to_owned());
                    let since = self.now;
                    self.me().agent_status = StatusInfo { status, message, data, since };
                }
                EarlyEffect::Log { .. } => {}
                other => panic!("the uniter has no reason to send {other:?}"),
            }
        }
    }
}

/// A charm that is told apart by its version.
pub(crate) fn charm(version: u64) -> CharmRef {
    CharmRef { digest: CharmDigest::of(version.to_string().as_bytes()), modified_version: version }
}

/// An event as tests write it: `db-relation-departed b/0`, and who departs if it is not the remote unit.
fn text(event: &Event) -> String {
    let mut text = event.hook_name();
    match (event.remote_unit(), event) {
        (Some(unit), _) => text += &format!(" {unit}"),
        (None, Event::RelationChanged { relation, .. }) => {
            text += &format!(" {}", relation.remote_application)
        }
        _ => {}
    }
    match event.departing_unit() {
        Some(departing) if Some(departing) != event.remote_unit() => text + &format!(" ({departing} leaves)"),
        _ => text,
    }
}
