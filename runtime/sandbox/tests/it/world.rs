//! A unit for tests, and the services of its hooks.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io::Write as _,
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_hook::{
    CallError, CallTime, HeldLease, HookContext, HookInputs, HookLimits, LeaseState, WorkloadTarget,
};
use periapt_host_api::{
    ApplicationName, Digest, LeaderTerm, MachineId, RelationId, Timestamp, UnitName,
    charm::{CharmFiles, CharmMeta},
    commit::EarlyEffect,
    event::{Event, RelationContext},
    journal::RecordedCalls,
    record::{CharmRef, RelationRecord, UnitRecord},
    relation::{BagKey, BagOwner, Endpoint, Role, Scope},
    resource::ResourceKey,
    settings::{ModelConfig, OptionValue},
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    view::{
        ApplicationView, BagView, CharmView, Leader, MachineView, Membership, ModelView, RelationView,
        ResourceView, UnitView, View,
    },
};
use periapt_sandbox::{
    BoxFuture, Budgets, Busy, HandlerOutcome, HookReport, HookServices, LoadedComponent, Options, Prepared,
    RunInputs, Sandbox, Seed, StorageMount,
};

/// The engine for all tests, as in a runner.
pub(crate) static SANDBOX: LazyLock<Sandbox> = LazyLock::new(|| Sandbox::new(Options::default()).unwrap());

/// Returns the component of a guest that `tools/guest` built.
pub(crate) fn component(name: &str) -> Vec<u8> {
    let directory = std::env::var_os("PERIAPT_GUESTS")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/guests")));
    let path = directory.join(format!("{name}.wasm"));
    let module = std::fs::read(&path)
        .unwrap_or_else(|error| panic!("{}: {error}; `make guests` builds it", path.display()));
    periapt_archive::adapt(&module).unwrap()
}

/// Returns a guest, compiled once for all tests.
pub(crate) fn loaded(name: &'static str) -> LoadedComponent {
    static CACHE: Mutex<BTreeMap<&str, LoadedComponent>> = Mutex::new(BTreeMap::new());
    let mut cache = CACHE.lock();
    cache.entry(name).or_insert_with(|| SANDBOX.compile_in_process(&component(name)).unwrap()).clone()
}

/// Returns a prepared guest with the files of its charm's directory.
pub(crate) fn prepared(name: &'static str, directory: &str) -> Prepared {
    let charms = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../charms"));
    SANDBOX.prepare(&loaded(name), Some(&charms.join(directory))).unwrap()
}

/// The services of a hook, which record its calls.
#[derive(Default)]
pub(crate) struct World {
    pub(crate) early: Mutex<Vec<(Timestamp, EarlyEffect)>>,
    /// The result of a renewal.
    pub(crate) renewed: LeaseState,
    pub(crate) renewals: AtomicU64,
    /// True if sleeps take real time.
    pub(crate) real_time: bool,
    /// The contents of resources, and the number of fetches.
    pub(crate) resources: BTreeMap<Digest, &'static str>,
    pub(crate) fetches: AtomicU64,
    /// The workloads of the unit; none: nobody listens.
    pub(crate) workloads: Option<fn(&WorkloadTarget) -> UnixStream>,
}

impl HookServices for World {
    fn now(&self) -> CallTime {
        CallTime { at: Timestamp::from_second(1_800_000_000).unwrap(), boot_ms: 1_000_000 }
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        self.renewals.fetch_add(1, Ordering::Relaxed);
        Box::pin(async {
            // A renewal takes time, so the hook waits on its fiber.
            tokio::task::yield_now().await;
            self.renewed
        })
    }

    fn fetch_secret(
        &self,
        key: periapt_host_api::secret::SecretKey,
    ) -> BoxFuture<'_, Result<periapt_host_api::secret::SecretData, periapt_hook::CallError>> {
        Box::pin(async move {
            Err(periapt_hook::CallError::NotFound(format!("secret {:?} not found", key.id.to_string())))
        })
    }

    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            // A download takes time, so the hook waits on its fiber.
            tokio::task::yield_now().await;
            let away = || CallError::TryAgain("the controller is not reachable, try again".to_owned());
            let content = self.resources.get(&key.digest).ok_or_else(away)?;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(content.as_bytes()).unwrap();
            Ok(file)
        })
    }

    fn connect(&self, target: WorkloadTarget) -> BoxFuture<'_, Result<UnixStream, CallError>> {
        let nobody = || CallError::NotReady("nobody listens: no workloads run here".to_owned());
        let answer = self.workloads.map(|workloads| workloads(&target)).ok_or_else(nobody);
        Box::pin(std::future::ready(answer))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        self.early.lock().extend(items);
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        if self.real_time {
            Box::pin(tokio::time::sleep(duration))
        } else {
            Box::pin(tokio::task::yield_now())
        }
    }
}

/// Returns a lease with some seconds left.
pub(crate) fn lease(seconds: u64) -> LeaseState {
    LeaseState { held: Some(HeldLease { term: LeaderTerm(3), valid_until_ms: 1_000_000 + seconds * 1_000 }) }
}

/// A hook to run.
pub(crate) struct Hook {
    pub(crate) event: Event,
    pub(crate) config: BTreeMap<String, OptionValue>,
    pub(crate) lease: LeaseState,
    pub(crate) budgets: Budgets,
    pub(crate) storage: Vec<StorageMount>,
    pub(crate) seed: Seed,
    pub(crate) world: Arc<World>,
    /// The content of the resource `data`.
    pub(crate) data: Option<&'static str>,
    /// The record that answers the calls of a replay.
    pub(crate) replay: Option<RecordedCalls>,
}

impl Hook {
    pub(crate) fn new(event: Event) -> Self {
        // Enough for every well-behaved guest, and short for the others.
        let budgets = Budgets {
            fuel: Budgets::cpu(Duration::from_millis(500)),
            host_calls: 300_000,
            ..Budgets::default()
        };
        Self {
            event,
            config: BTreeMap::new(),
            lease: LeaseState::default(),
            budgets,
            storage: Vec::new(),
            seed: Seed([7; 32]),
            world: Arc::default(),
            data: None,
            replay: None,
        }
    }

    pub(crate) fn option(mut self, name: &str, value: &str) -> Self {
        self.config.insert(name.to_owned(), OptionValue::Text(value.to_owned()));
        self
    }

    pub(crate) fn budgets(mut self, change: impl FnOnce(&mut Budgets)) -> Self {
        change(&mut self.budgets);
        self
    }

    /// Runs the hook in a prepared charm with the metadata of `charms/DIRECTORY`.
    pub(crate) async fn run(self, prepared: &Prepared, directory: &str) -> RunResult {
        let path = format!("{}/../../charms/{directory}/charmcraft.yaml", env!("CARGO_MANIFEST_DIR"));
        self.run_in(&SANDBOX, prepared, &std::fs::read_to_string(path).unwrap()).await.unwrap()
    }

    /// Runs the hook in a sandbox, with the given metadata.
    pub(crate) async fn run_in(
        self,
        sandbox: &Sandbox,
        prepared: &Prepared,
        yaml: &str,
    ) -> Result<RunResult, Busy> {
        let mut view = view(yaml, self.config);
        let application = view.applications.get_mut(&"u".parse::<ApplicationName>().unwrap()).unwrap();
        if let Some(content) = self.data {
            let (digest, size) = (Digest::of(content.as_bytes()), content.len() as u64);
            let resource = ResourceView { revision: 5, digest, size };
            application.resources.insert("data".parse().unwrap(), resource);
        }
        let context = HookContext::new(HookInputs {
            view,
            unit: unit("u/0"),
            event: self.event,
            attempt: 1,
            lease: self.lease,
            context_id: "0123456789abcdef0123456789abcdef".to_owned(),
            ids: periapt_hook::IdSeed([9; 32]),
            api_addresses: Vec::new(),
            limits: HookLimits::default(),
        })
        .unwrap();
        let context = match self.replay {
            Some(calls) => context.replaying(calls),
            None => context,
        };
        let inputs = RunInputs {
            context,
            seed: self.seed,
            budgets: self.budgets,
            storage: self.storage,
            services: Arc::clone(&self.world) as Arc<dyn HookServices>,
        };
        let report = sandbox.run_hook(prepared, inputs).await?;
        let mut early = std::mem::take(&mut *self.world.early.lock());
        early.extend(report.gathered.early.iter().cloned());
        Ok(RunResult { report, early, renewals: self.world.renewals.load(Ordering::Relaxed) })
    }
}

/// The result of a run.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) report: HookReport,
    /// All early effects, in order.
    pub(crate) early: Vec<(Timestamp, EarlyEffect)>,
    pub(crate) renewals: u64,
}

impl RunResult {
    /// Returns the log lines as `LEVEL MODULE MESSAGE`.
    pub(crate) fn log(&self) -> Vec<String> {
        self.early
            .iter()
            .filter_map(|(_, effect)| match effect {
                EarlyEffect::Log { level, module, message } => Some(format!("{level} {module} {message}")),
                _ => None,
            })
            .collect()
    }

    /// Returns the message of a failed hook.
    pub(crate) fn message(&self) -> &str {
        match &self.report.outcome {
            HandlerOutcome::Failed(error) => &error.message,
            outcome => panic!("it did not fail: {outcome:?}"),
        }
    }
}

pub(crate) fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

/// Returns the peer relation of unit `u/0`.
pub(crate) fn peer() -> RelationContext {
    RelationContext {
        endpoint: "peer".parse().unwrap(),
        relation: RelationId(1),
        remote_application: "u".parse().unwrap(),
    }
}

/// Returns a relation of unit `u/0` with application `w`, for charms that provide `db`.
pub(crate) fn db() -> RelationContext {
    RelationContext {
        endpoint: "db".parse().unwrap(),
        relation: RelationId(2),
        remote_application: "w".parse().unwrap(),
    }
}

/// Returns a view of application `u` with unit `u/0`: its peer relation with `u/1`, and a relation
/// with `w`.
pub(crate) fn view(charmcraft: &str, config: BTreeMap<String, OptionValue>) -> View {
    let files = CharmFiles { charmcraft: Some(charmcraft.to_owned()), ..CharmFiles::default() };
    let meta = CharmMeta::parse(&files).unwrap();
    let digest = Digest::of(charmcraft.as_bytes());
    let charm = CharmRef { digest, modified_version: 1 };
    let model = ModelView {
        uuid: "11111111-2222-4333-8444-555555555555".parse().unwrap(),
        name: "m".parse().unwrap(),
        life: Life::Alive,
        config: ModelConfig::default(),
        workload_limits: Default::default(),
        spaces: Default::default(),
    };
    let mut view = View { model: Some(model), ..View::default() };
    view.charms.insert(digest, CharmView { digest, component: digest, revision: 0, meta: meta.clone() });
    let application = ApplicationView {
        name: "u".parse().unwrap(),
        life: Life::Alive,
        charm,
        force_charm: false,
        config,
        config_hash: String::new(),
        settings_version: 0,
        trust_hash: String::new(),
        trust: false,
        leader: Some(Leader { unit: unit("u/0"), term: LeaderTerm(3) }),
        leader_settings: BTreeMap::new(),
        leader_settings_version: 0,
        bindings: Default::default(),
        bindings_hash: String::new(),
        update_status_interval: None,
        status: None,
        workload_egress: None,
        workload_crash: Default::default(),
        exposed: false,
        budgets: periapt_host_api::budget::BudgetSettings::default(),
        workload_limits: Default::default(),
        resources: Default::default(),
    };
    view.applications.insert(application.name.clone(), application);
    let peers = meta.endpoints_of(Role::Peer).next().map_or("peer", |(name, _)| name.as_str());
    view.units.insert(unit("u/0"), own_unit(charm, peers));
    let (u, w) = (("u", ["u/0", "u/1"]), ("w", ["w/0", "w/1"]));
    let relations =
        [(1, vec![(u, peers, Role::Peer)]), (2, vec![(u, "db", Role::Provider), (w, "db", Role::Requirer)])];
    for (id, ends) in relations {
        for unit_of in ends.iter().flat_map(|((_, units), ..)| units) {
            let key = BagKey { relation: RelationId(id), owner: BagOwner::Unit(unit(unit_of)) };
            let settings = BTreeMap::from([("of".to_owned(), (*unit_of).to_owned())]);
            view.bags.insert(key.clone(), BagView { key, settings, version: 1, container: None });
        }
        let members = ends.iter().flat_map(|((_, units), ..)| units);
        let relation = RelationView {
            id: RelationId(id),
            members: members.map(|name| (unit(name), Membership::Joined)).collect(),
            endpoints: ends
                .iter()
                .map(|((application, _), name, role)| Endpoint {
                    application: application.parse().unwrap(),
                    name: name.parse().unwrap(),
                    role: *role,
                    interface: "any".parse().unwrap(),
                })
                .collect(),
            scope: Scope::Global,
            life: Life::Alive,
            suspended: false,
            state: periapt_host_api::status::RelationState::Joined,
            state_since: periapt_host_api::Timestamp::UNIX_EPOCH,
            remote: None,
            egress: Vec::new(),
        };
        view.relations.insert(relation.id, relation);
    }
    view.machines.insert(MachineId(4), machine());
    view
}

fn own_unit(charm: CharmRef, peers: &str) -> UnitView {
    let record = |endpoint: &str, remote: &str, member: &str| RelationRecord {
        endpoint: endpoint.parse().unwrap(),
        remote_application: remote.parse().unwrap(),
        created: true,
        members: [(unit(member), 1)].into(),
        applications: BTreeMap::new(),
        changed_pending: None,
        gone: 0,
    };
    let relations = [(RelationId(1), record(peers, "u", "u/1")), (RelationId(2), record("db", "w", "w/0"))];
    UnitView {
        name: unit("u/0"),
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
        workload_status: StatusInfo::new(WorkloadStatus::Active, "", Timestamp::UNIX_EPOCH),
        agent_status: StatusInfo::new(AgentStatus::Executing, "", Timestamp::UNIX_EPOCH),
    }
}

fn machine() -> MachineView {
    MachineView {
        id: MachineId(4),
        agent: "here".parse().unwrap(),
        boot_id: "boot".to_owned(),
        addresses: vec!["10.0.0.9".to_owned()],
        interfaces: Vec::new(),
        ingress: Default::default(),
        unit_ingress: Default::default(),
        addresses_hash: String::new(),
        availability_zone: String::new(),
        ports: BTreeMap::new(),
    }
}
