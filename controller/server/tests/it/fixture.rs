//! A controller under test: its store fails on demand, and the test moves its clock.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt as _, StreamExt as _};
use periapt_blobs::Blobs;
use periapt_client::{Client, ClientError, Identity, NdJson};
use periapt_controller::{
    Handle, Listen, Options, Program, RandomSource, RunError, SystemClock, SystemRandomSource,
};
use periapt_host_api::{
    AgentName, ApplicationName, Digest, ErrorCode, ModelName, ModelUuid, StoreId, UnitName, UserName,
    access::ControllerAccess,
    agent::{AgentAssignments, Register},
    api::ModelSelector,
    command::{Answer, Command, ControllerCommand, Deploy},
    user::NewUser,
};
use periapt_store::MemoryStore;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

mod charms;
mod clock;
mod counted;
mod faults;

pub(crate) use charms::{
    charm, charm_with_container, charm_with_endpoint, charm_with_resources, larger_charm,
};
pub(crate) use clock::ManualClock;
pub(crate) use counted::{CountedStores, Writes, Written};
pub(crate) use faults::{Fault, Faults};

use faults::FaultyStore;

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
        firewall_problem: None,
        container_problem: None,
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

/// A source of ids that differ, and are the same in every run.
#[derive(Default)]
struct Counting(AtomicU64);

impl RandomSource for Counting {
    fn seed(&self) -> [u8; 16] {
        u128::from(self.0.fetch_add(1, Ordering::Relaxed) + 1).to_le_bytes()
    }
}
