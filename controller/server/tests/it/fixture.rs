//! A controller under test: its store fails on demand, and the test moves its clock.

use std::{
    path::Path,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_blobs::Blobs;
use periapt_client::{Client, ClientError, Identity, NdJson};
use periapt_controller::{
    Clock, Handle, Listen, OpenStore, Options, Program, RandomSource, RunError, SystemClock,
    SystemRandomSource,
};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, ErrorCode, ModelName, ModelUuid, Revision, StoreId, Timestamp,
    UnitName, UserName,
    access::ControllerAccess,
    agent::{AgentAssignments, Register},
    api::ModelSelector,
    command::{Answer, Command, ControllerCommand, Deploy},
    user::NewUser,
};
use periapt_store::{Batch, LoadedState, MemoryStore, Order, Record, RetentionPolicy, Store, StoreError};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use wit_component::{StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{LiftLowerAbi, ManglingAndAbi, Resolve};

/// The timeout of waits. No event takes this long, even on a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A controller, and an operator's client for it.
pub(crate) struct Fixture {
    pub(crate) handle: Handle,
    pub(crate) client: Client,
    pub(crate) clock: ManualClock,
    pub(crate) faults: Faults,
    running: JoinHandle<Result<(), RunError>>,
    blobs: TempDir,
}

impl Fixture {
    pub(crate) async fn start() -> Self {
        Self::start_on(Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))))).await
    }

    /// Starts a controller on an existing store.
    pub(crate) async fn start_on(memory: Arc<MemoryStore>) -> Self {
        Self::start_with(memory, 2 * TIMEOUT).await
    }

    /// Starts a controller with this stall timeout.
    pub(crate) async fn start_impatient(stall_within: Duration) -> Self {
        Self::start_with(Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7)))), stall_within).await
    }

    async fn start_with(memory: Arc<MemoryStore>, stall_within: Duration) -> Self {
        let (clock, faults) = (ManualClock::default(), Faults::default());
        let blobs = TempDir::new().unwrap();
        let options = Options {
            clock: Arc::new(clock.clone()),
            random: Arc::new(Counting::default()),
            stall_within,
            ..options(memory, faults.clone(), blobs.path())
        };
        let (handle, client, running) = run(options).await;
        // The first answer means that the first write is done; faults come after it.
        client.controller().await.unwrap();
        Self { handle, client, clock, faults, running, blobs }
    }

    /// Returns the number of stored blobs.
    pub(crate) fn archives(&self) -> usize {
        let namespaces = std::fs::read_dir(self.blobs.path()).unwrap();
        namespaces
            .map(|namespace| std::fs::read_dir(namespace.unwrap().path()).map_or(0, Iterator::count))
            .sum()
    }

    /// Returns the directory of the blobs.
    pub(crate) fn blobs(&self) -> &Path {
        self.blobs.path()
    }

    pub(crate) async fn stop(self) {
        self.handle.shutdown();
        tokio::time::timeout(TIMEOUT, self.running).await.unwrap().unwrap().unwrap();
    }

    pub(crate) fn as_agent(&self, name: &str) -> Agent {
        let name = AgentName::new(name).unwrap();
        let options = periapt_client::Options::new(self.handle.url(), Identity::Agent(name.clone()));
        Agent { name, client: Client::new(options).unwrap() }
    }

    pub(crate) fn as_user(&self, name: &str) -> Client {
        let user = Identity::User(UserName::new(name).unwrap());
        Client::new(periapt_client::Options::new(self.handle.url(), user)).unwrap()
    }

    /// Adds a superuser, and returns a client that the controller believes to be that user.
    pub(crate) async fn superuser(&self, name: &str) -> Client {
        let name = UserName::new(name).unwrap();
        let user = NewUser { name: name.clone(), display_name: String::new() };
        self.client.add_user(&user).await.unwrap();
        let access = ControllerAccess::Superuser;
        let grant = ControllerCommand::GrantController { user: name.clone(), access };
        self.client.controller_command(grant).await.unwrap();
        self.as_user(name.as_str())
    }

    pub(crate) async fn add_model(&self, name: &str) -> Model {
        let name = ModelName::new(name).unwrap();
        match self.client.controller_command(ControllerCommand::add_model(name)).await.unwrap() {
            Answer::Model { uuid } => Model { client: self.client.clone(), uuid },
            other => panic!("{other:?}"),
        }
    }

    /// Returns a model with an application `tiny` on a connected agent `one`.
    pub(crate) async fn deployed(&self, units: u32) -> Deployed {
        let agent = self.as_agent("one");
        let assignments = agent.connect().await;
        let model = self.add_model("m").await;
        let charm = self.client.upload_charm(charm()).await.unwrap().digest;
        model.command(deploy(charm, units)).await.unwrap();
        Deployed { agent, model, assignments }
    }
}

/// Returns the options of a controller on an existing store, with the machine's clock and randomness.
pub(crate) fn options(memory: Arc<MemoryStore>, faults: Faults, blobs: &Path) -> Options {
    Options {
        name: "home".into(),
        listen: Listen::InProcess("127.0.0.1:0".parse().unwrap()),
        engine: "wasmtime 48".into(),
        store: Arc::new(FaultyStore { memory, faults }),
        blobs: Blobs::local(blobs).unwrap(),
        check_helper: check_helper(),
        seal: periapt_controller::SealKey::new(&[5; 32]).unwrap(),
        replication: None,
        oidc: None,
        programs: None,
        directory: None,
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(SystemRandomSource),
        drain_within: Duration::from_secs(5),
        stall_within: 2 * TIMEOUT,
        upload_progress_within: Duration::from_secs(10),
    }
}

pub(crate) async fn run(options: Options) -> (Handle, Client, JoinHandle<Result<(), RunError>>) {
    let service = options.build().await.unwrap();
    let handle = service.handle();
    let running = tokio::spawn(service.run(CancellationToken::new()));
    let client = Client::new(periapt_client::Options::new(handle.url(), Identity::Local)).unwrap();
    (handle, client, running)
}

pub(crate) fn in_directory(directory: &Path) -> Options {
    let any = Listen::InProcess("127.0.0.1:0".parse().unwrap());
    Options::in_directory("home", directory, any, "wasmtime 48", check_helper()).unwrap()
}

/// Returns the helper program that checks charms, as the binary has it.
pub(crate) fn check_helper() -> Program {
    let path = env!("CARGO_BIN_EXE_periapt-check-charm").into();
    Program { path, arguments: Vec::new(), environment: Vec::new() }
}

pub(crate) struct Deployed {
    pub(crate) agent: Agent,
    pub(crate) model: Model,
    pub(crate) assignments: NdJson<AgentAssignments>,
}

pub(crate) struct Agent {
    pub(crate) name: AgentName,
    pub(crate) client: Client,
}

impl Agent {
    /// Registers the agent, and returns the open stream by which it is connected.
    pub(crate) async fn connect(&self) -> NdJson<AgentAssignments> {
        self.client.register(&self.name, &host()).await.unwrap();
        self.client.assignments(&self.name).await.unwrap()
    }
}

pub(crate) fn host() -> Register {
    Register {
        addresses: vec!["10.0.0.1".into()],
        interfaces: Vec::new(),
        boot_id: "b1".into(),
        hostname: "host".into(),
        availability_zone: String::new(),
        cores: 0,
        tags: Default::default(),
        version: "0.1.0".into(),
        engine: "wasmtime 48".into(),
        storage_limit: None,
        program: None,
        peer_port: None,
    }
}

pub(crate) struct Model {
    pub(crate) client: Client,
    pub(crate) uuid: ModelUuid,
}

impl Model {
    pub(crate) fn selector(&self) -> ModelSelector {
        self.uuid.into()
    }

    pub(crate) async fn command(&self, command: Command) -> Result<Answer, ClientError> {
        self.client.command(&self.selector(), command).await
    }
}

pub(crate) fn deploy(charm: Digest, units: u32) -> Command {
    let config = [("title".to_owned(), "mine".to_owned())].into();
    let deploy = Deploy { config, ..Deploy::of(charm, units) };
    Command::Deploy(deploy)
}

pub(crate) fn application(name: &str) -> ApplicationName {
    ApplicationName::new(name).unwrap()
}

pub(crate) fn unit(name: &str) -> UnitName {
    name.parse().unwrap()
}

pub(crate) fn code_of<T: std::fmt::Debug>(result: Result<T, ClientError>) -> ErrorCode {
    result.unwrap_err().refusal().unwrap().code
}

/// Returns the next value of a stream. Panics if there is none.
pub(crate) async fn next<T>(stream: &mut NdJson<T>) -> T {
    tokio::time::timeout(TIMEOUT, stream.next()).await.unwrap().unwrap().unwrap()
}

/// Returns the first value of a stream for which `holds` returns true.
pub(crate) async fn next_where<T>(stream: &mut NdJson<T>, holds: impl Fn(&T) -> bool) -> T {
    loop {
        let value = next(stream).await;
        if holds(&value) {
            return value;
        }
    }
}

/// Checks that a stream has no more values now, by a request on `meanwhile`.
pub(crate) async fn is_silent<T: std::fmt::Debug>(stream: &mut NdJson<T>, meanwhile: &Client) {
    for _ in 0..20 {
        meanwhile.controller().await.unwrap();
        if let Some(value) = stream.next().now_or_never() {
            panic!("{value:?}");
        }
    }
}

/// Returns the archive of a charm that has all functions and does nothing.
pub(crate) fn charm() -> bytes::Bytes {
    static ARCHIVE: OnceLock<bytes::Bytes> = OnceLock::new();
    ARCHIVE.get_or_init(|| packed("tiny", "", 0)).clone()
}

/// Returns the archive of a charm of more than a MiB.
pub(crate) fn larger_charm() -> bytes::Bytes {
    static ARCHIVE: OnceLock<bytes::Bytes> = OnceLock::new();
    ARCHIVE.get_or_init(|| packed("large", "", 1 << 20)).clone()
}

/// Returns the archive of a charm with a resource file.
pub(crate) fn charm_with_resources() -> bytes::Bytes {
    static ARCHIVE: OnceLock<bytes::Bytes> = OnceLock::new();
    let resources = "resources: {data: {type: file, filename: rows.csv}}\n";
    ARCHIVE.get_or_init(|| packed("stocked", resources, 0)).clone()
}

/// Returns the archive of the charm `web`, whose endpoint `site` can be offered.
pub(crate) fn charm_with_endpoint() -> bytes::Bytes {
    static ARCHIVE: OnceLock<bytes::Bytes> = OnceLock::new();
    ARCHIVE.get_or_init(|| packed("web", "provides: {site: {interface: http}}\n", 0)).clone()
}

/// Packs a charm. `more` is added to its metadata; `ballast` is the number of added bytes.
fn packed(name: &str, more: &str, ballast: u32) -> bytes::Bytes {
    let mut resolve = Resolve::default();
    let wit = include_str!("../../../../host-api/wit/charm.wit");
    let package = resolve.push_str("charm.wit", wit).unwrap();
    let world = resolve.select_world(&[package], Some("charm")).unwrap();
    let mut module = dummy_module(&resolve, world, ManglingAndAbi::Legacy(LiftLowerAbi::Sync));
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    if ballast > 0 {
        // A custom section of incompressible bytes. Each of its lengths takes five digits of seven bits.
        let mut seed = 1u64;
        let noise = (0..ballast).map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 56) as u8
        });
        let length = ballast + 2;
        module.push(0);
        module.extend(
            (0..5).map(|digit| ((length >> (7 * digit)) & 0x7f) as u8 | if digit < 4 { 0x80 } else { 0 }),
        );
        module.extend([1, b'x']);
        module.extend(noise);
    }
    let directory = TempDir::new().unwrap();
    let yaml = format!(
        "name: {name}\nsummary: s\ndescription: d\npeers: {{ring: ring}}\n\
            config: {{options: {{title: {{type: string, default: hello, description: d}}}}}}\n{more}"
    );
    std::fs::write(directory.path().join("charmcraft.yaml"), yaml).unwrap();
    std::fs::write(directory.path().join("tiny.wasm"), module).unwrap();
    let packed = periapt_archive::pack(directory.path(), &directory.path().join("tiny.wasm"));
    packed.unwrap().bytes.into()
}

/// A source of ids that differ, and are the same in every run.
#[derive(Default)]
struct Counting(AtomicU64);

impl RandomSource for Counting {
    fn seed(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1).to_le_bytes()
    }
}

/// A clock that the test moves.
#[derive(Clone)]
pub(crate) struct ManualClock {
    elapsed: watch::Sender<Duration>,
}

impl Default for ManualClock {
    fn default() -> Self {
        Self { elapsed: watch::Sender::new(Duration::ZERO) }
    }
}

impl ManualClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.elapsed.send_modify(|elapsed| *elapsed += by);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        start + *self.elapsed.borrow()
    }

    fn monotonic_ms(&self) -> u64 {
        u64::try_from(self.elapsed.borrow().as_millis()).unwrap()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        let mut elapsed = self.elapsed.subscribe();
        let until = *elapsed.borrow() + duration;
        async move {
            // The test's clock ends with its sender; then no task waits for it.
            let _ = elapsed.wait_for(|now| *now >= until).await;
        }
        .boxed()
    }
}

/// The faults of a store, set by the test.
#[derive(Clone, Default)]
pub(crate) struct Faults(
    Arc<Mutex<Fault>>,
    watch::Sender<bool>,
    Arc<AtomicU64>,
    /// A copy of what was synced last, if it is kept.
    Arc<Mutex<Option<Arc<MemoryStore>>>>,
);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Fault {
    #[default]
    None,
    /// Refuses every write.
    Refuse,
    /// Writes, then reports an unknown outcome; then the store cannot be opened.
    FailAfterWriting,
    /// Loses the write, then reports an unknown outcome; then the store cannot be opened.
    FailBeforeWriting,
    /// Reads only the first page of records.
    TornRecords,
}

impl Faults {
    pub(crate) fn set(&self, fault: Fault) {
        *self.0.lock() = fault;
    }

    /// Keeps a copy of what is synced from now on. The present content is.
    pub(crate) fn that_keep_what_is_synced(memory: &MemoryStore) -> Self {
        let faults = Self::default();
        *faults.3.lock() = Some(Arc::new(memory.copy()));
        faults
    }

    /// Returns what a machine that loses power has on its disk.
    pub(crate) fn synced(&self) -> Option<Arc<MemoryStore>> {
        self.3.lock().clone()
    }

    fn note_synced(&self, memory: &MemoryStore) {
        if let Some(synced) = &mut *self.3.lock() {
            *synced = Arc::new(memory.copy());
        }
    }

    fn get(&self) -> Fault {
        *self.0.lock()
    }

    /// Blocks all writes, until it is called with false.
    pub(crate) fn hold(&self, hold: bool) {
        self.1.send_replace(hold);
    }

    /// Returns the number of writes that have begun.
    pub(crate) fn writes(&self) -> u64 {
        self.2.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
struct FaultyStore {
    memory: Arc<MemoryStore>,
    faults: Faults,
}

impl OpenStore for FaultyStore {
    fn open(&self, _: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async {
            match self.faults.get() {
                Fault::FailAfterWriting | Fault::FailBeforeWriting => {
                    Err(StoreError::Failed("no disk".into()))
                }
                Fault::None | Fault::Refuse | Fault::TornRecords => {
                    Ok(Arc::new(self.clone()) as Arc<dyn Store>)
                }
            }
        }
        .boxed()
    }
}

impl Store for FaultyStore {
    fn id(&self) -> StoreId {
        self.memory.id()
    }

    fn load(&self) -> BoxFuture<'_, Result<LoadedState, StoreError>> {
        self.memory.load()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        async move {
            self.faults.2.fetch_add(1, Ordering::SeqCst);
            let mut held = self.faults.1.subscribe();
            let _ = held.wait_for(|held| !held).await;
            let failed = || Err(StoreError::Failed("the sync failed".into()));
            match self.faults.get() {
                Fault::None | Fault::TornRecords => self.memory.commit(batch).await,
                Fault::Refuse => Err(StoreError::Refused("the disk is full".into())),
                Fault::FailBeforeWriting => failed(),
                Fault::FailAfterWriting => {
                    self.memory.commit(batch).await?;
                    failed()
                }
            }
        }
        .boxed()
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.memory.apply(batch)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.faults.note_synced(&self.memory);
        self.memory.sync()
    }

    fn replace(&self, state: LoadedState) -> BoxFuture<'_, Result<(), StoreError>> {
        async move {
            self.memory.replace(state).await?;
            self.faults.note_synced(&self.memory);
            Ok(())
        }
        .boxed()
    }

    fn import(&self, sequence: &[u8], records: Vec<Record>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory.import(sequence, records)
    }

    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        let further = matches!(order, Order::OldestFirst { after: Some(_) });
        if further && self.faults.get() == Fault::TornRecords {
            return async { Err(StoreError::Failed("a sector cannot be read".into())) }.boxed();
        }
        self.memory.records(prefix, order, limit)
    }

    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>> {
        self.memory.sequences(after, limit)
    }

    fn prune(&self, prefix: &[u8], policy: RetentionPolicy) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.memory.prune(prefix, policy)
    }

    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>> {
        self.memory.forget(prefix)
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.memory.size()
    }
}
