//! A small model to run hooks in: application `a` with units `a/0` (the one that runs the hook) and `a/1`, related to
//! `b` by relation 1 (`db`), and to itself by the peer relation 2 (`ring`).

use std::collections::{BTreeMap, BTreeSet};

use periapt_hook::{
    CallAnswer, CallTime, HeldLease, HookContext, HookInputs, HookLimits, HookResults, LeaseState, ToolOutput,
};
use periapt_host_api::{
    ApplicationName, Digest, LeaderTerm, MachineId, RelationId, StorageId, Timestamp, UnitName,
    charm::{CharmFiles, CharmMeta},
    commit::EarlyEffect,
    event::{Event, RelationBatch, RelationContext},
    network::{Bindings, HostInterface, InterfaceAddress, Spaces, Subnet},
    ports::OpenedPorts,
    record::{CharmRef, RelationRecord, UnitRecord},
    relation::{BagKey, BagOwner, Endpoint, Scope, Settings},
    secret::{SecretOwner, SecretReader, SecretRevision},
    settings::{ModelConfig, OptionValue},
    state::StateKey,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    view::{
        ApplicationView, BagView, CharmView, Leader, MachineView, Membership, ModelView, OwnedRevisionView,
        OwnedSecretView, RelationView, ResourceView, SecretConsumerView, SecretView, StateView,
        StorageAttachment, StorageView, UnitOutline, UnitView, View,
    },
};

use super::table::secret;

pub(crate) const CONTEXT_ID: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const DB: RelationId = RelationId(1);
pub(crate) const RING: RelationId = RelationId(2);

const CHARM: &str = "name: a\nsummary: s\ndescription: d\nrequires: {db: mysql}\nprovides: {web: http}\n\
    peers: {ring: ring}\nconfig:\n  options:\n    title: {type: string, default: hello}\n    size: {type: int}\n\
    \x20   ratio: {type: float, default: 0.5}\n    debug: {type: boolean}\n    token: {type: secret}\n\
    storage: {data: {type: filesystem}, logs: {type: filesystem, multiple: {range: 0+}}}\n\
    resources:\n  data: {type: file, filename: rows.csv}\n  more: {type: file, filename: more.csv}\n\
    \x20 image: {type: oci-image}\n";

/// The content of the resource `data`, as its third revision; `more` has no content.
pub(crate) const DATA: &str = "a,b";

pub(crate) fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

pub(crate) fn application(name: &str) -> ApplicationName {
    name.parse().unwrap()
}

pub(crate) fn settings(entries: &[(&str, &str)]) -> Settings {
    entries.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

pub(crate) fn pairs(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    settings(entries).into_iter().collect()
}

/// Returns the time of all calls: 1,000,000 ms on the clock of leases.
pub(crate) fn now() -> CallTime {
    at(0)
}

/// Returns the time some seconds later.
pub(crate) fn at(seconds: i64) -> CallTime {
    let boot_ms = u64::try_from(1_000_000 + seconds * 1_000).unwrap();
    CallTime { at: Timestamp::from_second(1_800_000_000 + seconds).unwrap(), boot_ms }
}

pub(crate) fn lease(term: u64, seconds: u64) -> LeaseState {
    LeaseState {
        held: Some(HeldLease { term: LeaderTerm(term), valid_until_ms: 1_000_000 + seconds * 1_000 }),
    }
}

/// Returns the relation of `db`, for events.
pub(crate) fn db() -> RelationContext {
    RelationContext { endpoint: "db".parse().unwrap(), relation: DB, remote_application: application("b") }
}

pub(crate) fn changed(remote_unit: &str) -> Event {
    Event::RelationChanged { relation: db(), remote_unit: Some(unit(remote_unit)) }
}

pub(crate) fn joined(remote_unit: &str) -> Event {
    Event::RelationJoined { relation: db(), remote_unit: unit(remote_unit) }
}

pub(crate) fn departed(remote_unit: &str) -> Event {
    Event::RelationDeparted {
        relation: db(),
        remote_unit: unit(remote_unit),
        departing_unit: unit(remote_unit),
    }
}

/// Returns a batch of the relation of `db`.
pub(crate) fn batch(joined: &[&str], changed: &[&str], departed: &[&str]) -> Event {
    let units = |names: &[&str]| names.iter().map(|name| unit(name)).collect();
    let batch = RelationBatch {
        joined: units(joined),
        changed: units(changed),
        departed: units(departed),
        ..RelationBatch::default()
    };
    Event::RelationBatch { relation: db(), batch }
}

/// Returns a status since the epoch.
pub(crate) fn status(status: WorkloadStatus, message: &str) -> StatusInfo<WorkloadStatus> {
    StatusInfo::new(status, message, Timestamp::UNIX_EPOCH)
}

/// The inputs of a hook, for a test to change.
pub(crate) struct World {
    pub(crate) inputs: HookInputs,
}

impl World {
    /// Returns the world of `a/0` in an update-status hook. `a/1` is the leader. `a/0` was told of `b/0` and `b/1`.
    pub(crate) fn new() -> Self {
        let model = ModelView {
            uuid: "11111111-2222-4333-8444-555555555555".parse().unwrap(),
            name: "m".parse().unwrap(),
            life: Life::Alive,
            config: ModelConfig::default(),
            workload_limits: Default::default(),
            spaces: spaces(),
        };
        let mut view = View { model: Some(model), ..View::default() };
        let files = CharmFiles { charmcraft: Some(CHARM.to_owned()), ..CharmFiles::default() };
        let digest = Digest::of(b"a");
        let meta = CharmMeta::parse(&files).unwrap();
        view.charms.insert(digest, CharmView { digest, component: digest, revision: 0, meta });
        let charm = CharmRef { digest, modified_version: 1 };
        view.applications.insert(application("a"), own_application(charm));
        view.units.insert(unit("a/0"), own_unit(charm));
        for (name, life, shown) in [
            ("a/1", Life::Alive, WorkloadStatus::Blocked),
            ("a/0", Life::Alive, WorkloadStatus::Active),
            ("b/0", Life::Alive, WorkloadStatus::Active),
            ("b/1", Life::Dying, WorkloadStatus::Active),
            ("b/2", Life::Dead, WorkloadStatus::Active),
        ] {
            let outline =
                UnitOutline { name: unit(name), life, workload_status: status(shown, name), agent: None };
            view.outlines.insert(unit(name), outline);
        }
        view.relations.insert(DB, relation(DB, &[("b", "server", "mysql"), ("a", "db", "mysql")]));
        view.relations.insert(RING, relation(RING, &[("a", "ring", "ring")]));
        view.machines.insert(MachineId(4), machine());
        let mut world = Self {
            inputs: HookInputs {
                view,
                unit: unit("a/0"),
                event: Event::UpdateStatus,
                attempt: 1,
                lease: LeaseState::default(),
                context_id: CONTEXT_ID.to_owned(),
                ids: periapt_hook::IdSeed([9; 32]),
                api_addresses: vec!["10.0.0.1:17070".to_owned(), "10.0.0.2:17070".to_owned()],
                limits: HookLimits::default(),
            },
        };
        world.bag(DB, BagOwner::Unit(unit("b/0")), &[("host", "10.0.0.4"), ("port", "3306")]);
        world.bag(DB, BagOwner::Unit(unit("b/1")), &[("host", "10.0.0.5")]);
        world.bag(DB, BagOwner::Application(application("b")), &[("version", "8")]);
        world.bag(DB, BagOwner::Unit(unit("a/0")), &[("ingress-address", "10.0.0.9")]);
        world.bag(DB, BagOwner::Unit(unit("a/1")), &[("secret", "of a/1")]);
        world.bag(DB, BagOwner::Application(application("a")), &[("database", "wp")]);
        world.bag(RING, BagOwner::Unit(unit("a/1")), &[("seed", "7")]);
        world.bag(RING, BagOwner::Application(application("a")), &[("password", "p")]);
        world.stored(&[("a/0", "seen", "1"), ("a/0", "done", ""), ("a/1", "seen", "of a/1")]);
        world.storage("data/0", Some(("a/0", "/srv/data")), Provisioned::Yes);
        world.storage("logs/1", Some(("a/0", "/srv/logs/1")), Provisioned::No);
        world.storage("data/2", Some(("a/1", "/srv/data")), Provisioned::Yes);
        world.secrets();
        world
    }

    /// Returns a world in which `a/0` leads with term 3 and a lease of 60 more seconds.
    pub(crate) fn leader() -> Self {
        let mut world = Self::new();
        world.own_application().leader = Some(Leader { unit: unit("a/0"), term: LeaderTerm(3) });
        world.inputs.lease = lease(3, 60);
        world
    }

    pub(crate) fn event(mut self, event: Event) -> Self {
        self.inputs.event = event;
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut HookLimits)) -> Self {
        change(&mut self.inputs.limits);
        self
    }

    pub(crate) fn bag(&mut self, relation: RelationId, owner: BagOwner, entries: &[(&str, &str)]) {
        let key = BagKey { relation, owner };
        let bag = BagView { key: key.clone(), settings: settings(entries), version: 1, container: None };
        self.inputs.view.bags.insert(key, bag);
    }

    /// Sets the charm's stored state: unit, key and value.
    fn stored(&mut self, entries: &[(&str, &str, &str)]) {
        for (owner, key, value) in entries {
            let key = StateKey { unit: unit(owner), key: (*key).into() };
            self.inputs.view.states.insert(key.clone(), StateView { key, value: (*value).into() });
        }
    }

    fn storage(&mut self, id: &str, attached: Option<(&str, &str)>, provisioned: Provisioned) {
        let attachment = attached.map(|(owner, location)| StorageAttachment {
            unit: unit(owner),
            life: Life::Alive,
            location: location.to_owned(),
            read_only: false,
        });
        let id: StorageId = id.parse().unwrap();
        let provisioned = provisioned == Provisioned::Yes;
        let view = StorageView { id: id.clone(), life: Life::Alive, size: 1_024, provisioned, attachment };
        self.inputs.view.storages.insert(id, view);
    }

    /// Adds the secrets that the table names: the unit's own, one of `b` that the unit tracks at revision 1 of 2, one
    /// that it may no longer read, and its application's.
    fn secrets(&mut self) {
        let owned = |label: &str| OwnedSecretView {
            label: Some(label.into()),
            description: "what it is".into(),
            rotate: "daily".parse().unwrap(),
            next_rotate: None,
            rotate_due: false,
            revisions: BTreeMap::from([(SecretRevision(1), OwnedRevisionView::default())]),
            access: BTreeMap::from([(SecretReader::Unit(unit("b/0")), Some(DB))]),
        };
        let theirs = SecretConsumerView { tracked: SecretRevision(1), label: Some("theirs".into()) };
        let of_b = SecretOwner::Application(application("b"));
        let none: [SecretReader; 0] = [];
        for (number, owner, latest, readers, consumer, owned) in [
            (1, SecretOwner::Unit(unit("a/0")), 1, none.to_vec(), None, Some(owned("own"))),
            (
                2,
                of_b.clone(),
                2,
                vec![SecretReader::Application(application("a"))],
                Some(theirs.clone()),
                None,
            ),
            (3, of_b, 0, none.to_vec(), Some(theirs), None),
            (4, SecretOwner::Application(application("a")), 1, none.to_vec(), None, Some(owned("ours"))),
        ] {
            let view = SecretView {
                id: secret(number),
                owner,
                latest: SecretRevision(latest),
                readers: readers.into_iter().collect(),
                consumers: consumer.into_iter().map(|consumer| (unit("a/0"), consumer)).collect(),
                owned,
            };
            self.inputs.view.secrets.insert(view.id, view);
        }
    }

    pub(crate) fn own_application(&mut self) -> &mut ApplicationView {
        self.inputs.view.applications.get_mut(&application("a")).unwrap()
    }

    pub(crate) fn own_unit(&mut self) -> &mut UnitView {
        self.inputs.view.units.get_mut(&unit("a/0")).unwrap()
    }

    pub(crate) fn relation(&mut self, id: RelationId) -> &mut RelationView {
        self.inputs.view.relations.get_mut(&id).unwrap()
    }

    pub(crate) fn members(&mut self, id: RelationId, members: &[&str]) {
        let record = self.own_unit().record.relations.get_mut(&id).unwrap();
        record.members = members.iter().map(|name| (unit(name), 1)).collect();
    }

    pub(crate) fn opened(&mut self, name: &str, ranges: &[(&str, &[&str])]) {
        let opened = ranges.iter().map(|(range, endpoints)| OpenedPorts {
            range: range.parse().unwrap(),
            endpoints: endpoints.iter().map(|name| name.parse().unwrap()).collect(),
        });
        let machine = self.inputs.view.machines.get_mut(&MachineId(4)).unwrap();
        machine.ports.insert(unit(name), opened.collect());
    }

    pub(crate) fn start(self) -> Hook {
        Hook { context: HookContext::new(self.inputs).unwrap() }
    }
}

/// The readiness of a storage instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Provisioned {
    Yes,
    No,
}

/// A hook in progress.
pub(crate) struct Hook {
    pub(crate) context: HookContext,
}

impl Hook {
    /// Runs a tool. The line is split at blanks, and `''` stands for an empty argument.
    pub(crate) fn tool(&mut self, line: &str) -> ToolOutput {
        self.tool_with(line, None)
    }

    pub(crate) fn tool_with(&mut self, line: &str, stdin: Option<&str>) -> ToolOutput {
        let mut words = line.split_whitespace().map(|word| word.replace("''", ""));
        let name = words.next().unwrap();
        let arguments: Vec<_> = words.collect();
        match self.context.run_tool(now(), &name, &arguments, stdin.map(str::as_bytes)) {
            CallAnswer::Ready(output) => output,
            CallAnswer::NeedsLease => panic!("{line} asks for the lease"),
            CallAnswer::NeedsSecret(key) => panic!("{line} asks for {key:?}"),
            CallAnswer::NeedsFile(request) => panic!("{line} asks for {request:?}"),
            CallAnswer::NeedsResource(key) => panic!("{line} asks for {key:?}"),
        }
    }

    /// Runs each line in order, and compares its output.
    pub(crate) fn check(&mut self, table: &[(&str, &str)]) {
        for (line, stdout) in table {
            let output = self.tool(line);
            assert_eq!(
                (output.exit_code, output.stdout.as_str(), output.stderr.as_str()),
                (0, *stdout, ""),
                "{line}"
            );
        }
    }

    /// Runs each line in order, and compares its exit code and error.
    pub(crate) fn check_errors(&mut self, table: &[(&str, u8, &str)]) {
        for (line, code, error) in table {
            let output = self.tool(line);
            let expected = (*code, "", format!("ERROR {error}\n"));
            assert_eq!((output.exit_code, output.stdout.as_str(), output.stderr), expected, "{line}");
        }
    }

    /// Drains the log lines so far, as `LEVEL MODULE MESSAGE`.
    pub(crate) fn log_lines(&mut self) -> Vec<String> {
        self.context.drain_early().iter().filter_map(|(_, effect)| log_line(effect)).collect()
    }

    pub(crate) fn finish(self) -> HookResults {
        self.context.finish()
    }
}

pub(crate) fn log_line(effect: &EarlyEffect) -> Option<String> {
    match effect {
        EarlyEffect::Log { level, module, message } => Some(format!("{level} {module} {message}")),
        _ => None,
    }
}

pub(crate) fn ready<T>(answer: CallAnswer<T>) -> T {
    match answer {
        CallAnswer::Ready(value) => value,
        CallAnswer::NeedsLease => panic!("the lease is asked for"),
        CallAnswer::NeedsSecret(key) => panic!("{key:?} is asked for"),
        CallAnswer::NeedsFile(request) => panic!("{request:?} is asked for"),
        CallAnswer::NeedsResource(key) => panic!("{key:?} is asked for"),
    }
}

fn data() -> ResourceView {
    ResourceView { revision: 3, digest: Digest::of(DATA.as_bytes()), size: DATA.len() as u64 }
}

fn own_application(charm: CharmRef) -> ApplicationView {
    ApplicationView {
        name: application("a"),
        life: Life::Alive,
        charm,
        force_charm: false,
        config: BTreeMap::from([("size".to_owned(), OptionValue::Integer(80))]),
        config_hash: String::new(),
        settings_version: 0,
        trust_hash: String::new(),
        trust: false,
        leader: Some(Leader { unit: unit("a/1"), term: LeaderTerm(2) }),
        leader_settings: settings(&[("x", "1"), ("w", "2")]),
        leader_settings_version: 1,
        bindings: bindings(),
        bindings_hash: String::new(),
        update_status_interval: None,
        status: None,
        workload_egress: None,
        workload_crash: Default::default(),
        exposed: false,
        budgets: periapt_host_api::budget::BudgetSettings::default(),
        workload_limits: Default::default(),
        resources: [("data".parse().unwrap(), data())].into(),
    }
}

fn own_unit(charm: CharmRef) -> UnitView {
    let record = |endpoint: &str, remote: &str, members: &[&str]| RelationRecord {
        endpoint: endpoint.parse().unwrap(),
        remote_application: application(remote),
        created: true,
        members: members.iter().map(|name| (unit(name), 1)).collect(),
        applications: BTreeMap::new(),
        changed_pending: None,
        gone: 0,
    };
    let relations = [(DB, record("db", "b", &["b/0", "b/1"])), (RING, record("ring", "a", &["a/1"]))];
    UnitView {
        name: unit("a/0"),
        life: Life::Alive,
        machine: MachineId(4),
        principal: None,
        subordinates: BTreeSet::new(),
        resolved: None,
        record: UnitRecord {
            secrets: BTreeMap::new(),
            charm: Some(charm),
            relations: BTreeMap::from(relations),
            ..UnitRecord::default()
        },
        early_number: 0,
        workload_status: status(WorkloadStatus::Active, "a/0"),
        agent_status: StatusInfo::new(AgentStatus::Executing, "", Timestamp::UNIX_EPOCH),
    }
}

fn relation(id: RelationId, ends: &[(&str, &str, &str)]) -> RelationView {
    use periapt_host_api::relation::Role;
    let roles: &[Role] = if ends.len() == 1 { &[Role::Peer] } else { &[Role::Provider, Role::Requirer] };
    let endpoints = ends.iter().zip(roles).map(|((owner, name, interface), role)| Endpoint {
        application: application(owner),
        name: name.parse().unwrap(),
        role: *role,
        interface: interface.parse().unwrap(),
    });
    RelationView {
        id,
        endpoints: endpoints.collect(),
        scope: Scope::Global,
        life: Life::Alive,
        suspended: false,
        state: periapt_host_api::status::RelationState::Joined,
        state_since: periapt_host_api::Timestamp::UNIX_EPOCH,
        remote: None,
        egress: Vec::new(),
        members: [(unit("a/0"), Membership::Joined)].into_iter().collect(),
    }
}

/// Returns a machine with `eth0` in no space, and `eth1` in `internal`, to which `web` is bound. `ring` is bound to a
/// space without addresses.
fn machine() -> MachineView {
    let interface = |name: &str, mac: &str, address: &str| {
        let address = address.parse().unwrap();
        let subnet = Subnet::around(address, 24).unwrap();
        let addresses = vec![InterfaceAddress { address, subnet }];
        HostInterface { name: name.into(), mac: mac.into(), addresses }
    };
    MachineView {
        id: MachineId(4),
        agent: "host".parse().unwrap(),
        boot_id: String::new(),
        addresses: vec!["10.0.0.9".to_owned()],
        interfaces: vec![
            interface("eth1", "00:16:3e:00:00:02", "192.168.7.9"),
            interface("eth0", "00:16:3e:00:00:01", "10.0.0.9"),
        ],
        ingress: Default::default(),
        unit_ingress: Default::default(),
        addresses_hash: String::new(),
        availability_zone: "z1".to_owned(),
        ports: BTreeMap::new(),
    }
}

fn spaces() -> Spaces {
    Spaces([("internal".parse().unwrap(), ["192.168.7.0/24".parse().unwrap()].into())].into())
}

fn bindings() -> Bindings {
    let mut bindings = Bindings::default();
    bindings.endpoints.insert("web".into(), "internal".parse().unwrap());
    bindings.endpoints.insert("ring".into(), "elsewhere".parse().unwrap());
    bindings
}
