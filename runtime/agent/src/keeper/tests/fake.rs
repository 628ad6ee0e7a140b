//! A fake controller, and runners that the test plays.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::unix::fs::FileExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_client::{KnownLayer, PartialFile};
use periapt_helper::RunnerPaths;
use periapt_host_api::{
    AgentName, Digest, Incarnation, LeaderTerm, ModelUuid, Refusal, RequestId, Revision, StoreId, Timestamp,
    UnitName,
    agent::{AgentAssignments, AgentPlace, Register, RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    command::{CommandResult, CommandResults, Commands},
    record::{CharmRef, UnitRecord},
    resource::{ContentLayers, ResourceKey, frame_ranges},
    secret::{SecretData, SecretKey},
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    view::{ApplicationView, FrameLine, Leader, UnitView, ViewEntity},
    workload_log::{PartAnswer, WorkloadLogPart},
};
use periapt_sandbox::{Options as SandboxOptions, Sandbox};
use periapt_uniter::Timeline;
use tokio::{
    net::UnixStream,
    sync::{mpsc, watch},
    task::JoinHandle,
    time::Instant,
};
use tokio_stream_of_channel::stream_of;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::BootTime,
    helper::Part,
    keeper::{
        charms::Charms,
        compile::{Compile, CompileError},
        controller::{Answers, Controller, ControllerError},
        directories::Directories,
        egress::{ControllerPlaces, EgressHost, SystemWay},
        ingress::IngressHost,
        model::{ModelKeeper, Shared},
        pods::{HostMemory, PodFiles, PodProgram, PodStarter},
        process::{Launch, Process, Runner},
    },
    options::{CompileLimits, EgressOptions, HookCapacity, PodDrivers},
    protocol::{
        Call, CallId, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, Outgoing, Start, ToKeeper, ToRunner,
        split,
    },
};

mod tokio_stream_of_channel {
    use futures_util::{StreamExt as _, stream};
    use tokio::sync::mpsc;

    use crate::keeper::controller::{Answers, ControllerError};

    /// Returns a stream of the items of a channel.
    pub(super) fn stream_of<T: Send + 'static>(
        receiver: mpsc::Receiver<Result<T, ControllerError>>,
    ) -> Answers<T> {
        stream::unfold(receiver, |mut receiver| async move { Some((receiver.recv().await?, receiver)) })
            .boxed()
    }
}

/// A stream that the keeper opened, with its position.
pub(crate) struct OpenedWatch {
    pub(crate) position: Option<WatchPosition>,
    pub(crate) frames: mpsc::Sender<Result<FrameLine, ControllerError>>,
}

/// A function that answers commands.
type Answerer =
    dyn Fn(&[RunnerCommand]) -> Result<Vec<Result<RunnerAnswer, Refusal>>, ControllerError> + Send + Sync;

/// The test's side of the fake controller.
#[derive(Clone)]
pub(crate) struct FakeController {
    watches: mpsc::UnboundedSender<OpenedWatch>,
    calls: mpsc::UnboundedSender<Vec<RunnerCommand>>,
    answer: Arc<Mutex<Arc<Answerer>>>,
    /// While this is true, calls wait.
    pub(crate) held: Arc<watch::Sender<bool>>,
    /// The times at which a program was fetched, in vain.
    pub(crate) fetched_programs: Arc<Mutex<Vec<Instant>>>,
    /// The archive of each charm.
    pub(crate) archive: Arc<Mutex<Result<Vec<u8>, ControllerError>>>,
    /// The contents of resources, by their digests. Each clone has contents of its own.
    pub(crate) contents: BTreeMap<Digest, Result<&'static str, ControllerError>>,
    /// The layers in contents. Each clone has its own.
    pub(crate) layers: BTreeMap<Digest, ContentLayers>,
    /// The number of calls that fetched an archive or a content.
    pub(crate) fetched: Arc<AtomicUsize>,
    /// The bytes that were fetched of contents of which some layers were there.
    pub(crate) fetched_bytes: Arc<AtomicUsize>,
    /// The most bytes of an archive or a content that one call sends before its connection breaks.
    pub(crate) breaks_after: Arc<AtomicUsize>,
    /// The registrations that were sent, taken or not.
    pub(crate) registered: Arc<Mutex<Vec<Register>>>,
    /// The answer to registrations.
    pub(crate) registers: Arc<Mutex<Result<(), ControllerError>>>,
    /// The operator of all sessions.
    pub(crate) operator: PlayedOperator,
}

/// An operator of sessions that the test plays.
#[derive(Clone, Default)]
pub(crate) struct PlayedOperator {
    /// The parts that were handed over.
    pub(crate) parts: Arc<watch::Sender<Vec<(WorkloadLogPart, Bytes)>>>,
    /// The number of the next parts for which there is no room.
    pub(crate) pauses: Arc<Mutex<usize>>,
    /// The input that no agent has taken yet.
    input: Arc<watch::Sender<Vec<u8>>>,
}

impl PlayedOperator {
    /// Adds bytes to the input.
    pub(crate) fn say(&self, bytes: &[u8]) {
        self.input.send_modify(|input| input.extend_from_slice(bytes));
    }
}

fn away<T>() -> Result<T, ControllerError> {
    Err(ControllerError::Away("the controller is away".to_owned()))
}

/// Attaches, grants every claim, and accepts all other commands.
pub(crate) fn obliging(
    commands: &[RunnerCommand],
) -> Result<Vec<Result<RunnerAnswer, Refusal>>, ControllerError> {
    Ok(commands
        .iter()
        .map(|command| {
            Ok(match command {
                RunnerCommand::Attach => RunnerAnswer::Attached { incarnation: Incarnation(7) },
                RunnerCommand::Claim(_) => RunnerAnswer::Granted { term: LeaderTerm(3), seconds: 60 },
                _ => RunnerAnswer::Done,
            })
        })
        .collect())
}

impl FakeController {
    /// Creates a controller that serves no model.
    pub(crate) fn without_models() -> Self {
        let ((watches, _), (calls, _)) = (mpsc::unbounded_channel(), mpsc::unbounded_channel());
        Self::new(watches, calls)
    }

    fn new(
        watches: mpsc::UnboundedSender<OpenedWatch>,
        calls: mpsc::UnboundedSender<Vec<RunnerCommand>>,
    ) -> Self {
        Self {
            watches,
            calls,
            answer: Arc::new(Mutex::new(Arc::new(obliging))),
            held: Arc::new(watch::Sender::new(false)),
            fetched_programs: Arc::default(),
            archive: Arc::new(Mutex::new(away())),
            contents: BTreeMap::new(),
            layers: BTreeMap::new(),
            fetched: Arc::default(),
            fetched_bytes: Arc::default(),
            breaks_after: Arc::new(AtomicUsize::new(usize::MAX)),
            registered: Arc::default(),
            registers: Arc::new(Mutex::new(Ok(()))),
            operator: PlayedOperator::default(),
        }
    }

    /// Returns the number of archives and contents that were fetched, in vain or not.
    pub(crate) fn fetched(&self) -> usize {
        self.fetched.load(Ordering::Relaxed)
    }

    /// Returns the problem of the firewall in each registration so far.
    pub(crate) fn firewall_problems(&self) -> Vec<Option<String>> {
        self.registered.lock().iter().map(|register| register.firewall_problem.clone()).collect()
    }

    /// Sends what a file lacks of a content.
    async fn send(&self, content: &[u8], file: &mut PartialFile) -> Result<(), ControllerError> {
        let rest = content.get(file.length() as usize..).unwrap_or_default();
        let sent = rest.len().min(self.breaks_after.load(Ordering::Relaxed));
        file.append(&rest[..sent]).await.map_err(|error| ControllerError::Away(error.to_string()))?;
        if sent < rest.len() { away() } else { Ok(()) }
    }

    /// Sets the function that answers calls.
    pub(crate) fn answers(&self, answer: Arc<Answerer>) {
        *self.answer.lock() = answer;
    }
}

impl Controller for FakeController {
    async fn register(&self, register: Register) -> Result<(), ControllerError> {
        self.registered.lock().push(register);
        self.registers.lock().clone()
    }

    async fn assignments(&self) -> Result<Answers<AgentAssignments>, ControllerError> {
        Ok(futures_util::stream::pending().boxed())
    }

    async fn watch(
        &self,
        _model: ModelUuid,
        position: Option<WatchPosition>,
    ) -> Result<Answers<FrameLine>, ControllerError> {
        let (frames, receiver) = mpsc::channel(1);
        self.watches
            .send(OpenedWatch { position, frames })
            .map_err(|_| ControllerError::Away("the test is over".to_owned()))?;
        Ok(stream_of(receiver))
    }

    async fn commands(
        &self,
        _model: ModelUuid,
        Commands { commands, .. }: Commands<RunnerCommand>,
    ) -> Result<CommandResults<RunnerAnswer>, ControllerError> {
        let _ = self.calls.send(commands.clone());
        let _ = self.held.subscribe().wait_for(|held| !held).await;
        let answer = Arc::clone(&self.answer.lock());
        let results = answer(&commands)?.into_iter().map(CommandResult::from).collect();
        Ok(CommandResults { results, revision: Revision(100) })
    }

    async fn peers(&self, _model: ModelUuid) -> Result<BTreeMap<AgentName, AgentPlace>, ControllerError> {
        Err(ControllerError::Away("no agents here".to_owned()))
    }

    async fn workload_log_part(
        &self,
        _id: RequestId,
        part: (WorkloadLogPart, Bytes),
    ) -> Result<PartAnswer, ControllerError> {
        let mut pauses = self.operator.pauses.lock();
        if *pauses > 0 {
            *pauses -= 1;
            return Ok(PartAnswer::NoRoom);
        }
        drop(pauses);
        self.operator.parts.send_modify(|parts| parts.push(part));
        Ok(PartAnswer::Taken)
    }

    async fn exec_session_input(&self, _id: RequestId) -> Result<Bytes, ControllerError> {
        let mut input = self.operator.input.subscribe();
        // The sender is this controller's.
        let _ = input.wait_for(|input| !input.is_empty()).await;
        let mut taken = Vec::new();
        self.operator.input.send_modify(|input| taken = std::mem::take(input));
        Ok(taken.into())
    }

    async fn secret(
        &self,
        _model: ModelUuid,
        _unit: &UnitName,
        _key: &SecretKey,
    ) -> Result<SecretData, ControllerError> {
        away()
    }

    async fn resource(
        &self,
        _model: ModelUuid,
        _unit: &UnitName,
        key: &ResourceKey,
        file: &mut PartialFile,
    ) -> Result<(), ControllerError> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        // Other tasks run now. A concurrent request must wait for this download.
        tokio::task::yield_now().await;
        let content = self.contents.get(&key.digest).cloned().unwrap_or_else(away)?;
        self.send(content.as_bytes(), file).await
    }

    async fn resource_layers(
        &self,
        _model: ModelUuid,
        _unit: &UnitName,
        key: &ResourceKey,
    ) -> Result<ContentLayers, ControllerError> {
        Ok(self.layers.get(&key.digest).cloned().unwrap_or_default())
    }

    async fn resource_beside(
        &self,
        _model: ModelUuid,
        _unit: &UnitName,
        key: &ResourceKey,
        (size, known): (u64, Vec<KnownLayer>),
        into: &mut PartialFile,
    ) -> Result<bool, ControllerError> {
        let failed = |error: io::Error| ControllerError::Away(error.to_string());
        let whole = self.contents.get(&key.digest).cloned().unwrap_or_else(away)?.as_bytes();
        let places: Vec<_> = known.iter().map(|layer| layer.place).collect();
        let mut content = vec![0; whole.len()];
        for range in frame_ranges(&places, size) {
            let range = range.start as usize..range.end as usize;
            self.fetched_bytes.fetch_add(range.len(), Ordering::Relaxed);
            content[range.clone()].copy_from_slice(&whole[range]);
        }
        for KnownLayer { place, file, from } in known {
            let range = place.at as usize..(place.at + place.size) as usize;
            file.read_exact_at(&mut content[range], from).map_err(failed)?;
        }
        into.clear().await.map_err(failed)?;
        into.append(&content).await.map_err(failed)?;
        let is_whole = into.digest() == key.digest;
        if !is_whole {
            into.clear().await.map_err(failed)?;
        }
        Ok(is_whole)
    }

    async fn charm(&self, _digest: Digest, file: &mut PartialFile) -> Result<(), ControllerError> {
        self.fetched.fetch_add(1, Ordering::Relaxed);
        let archive = self.archive.lock().clone()?;
        self.send(&archive, file).await
    }

    async fn program(&self, _digest: Digest, _file: &Path) -> Result<(), ControllerError> {
        self.fetched_programs.lock().push(Instant::now());
        Err(ControllerError::Away("no program is served here".to_owned()))
    }
}

struct NoCompiler;

impl Compile for NoCompiler {
    fn compile<'a>(
        &'a self,
        _: Part,
        _: &'a Path,
        _: &'a Path,
        _: CompileLimits,
    ) -> BoxFuture<'a, Result<(), CompileError>> {
        async { Err(CompileError::Host("no compiler here".to_owned())) }.boxed()
    }
}

/// A runner that the test plays.
pub(crate) struct PlayedRunner {
    pub(crate) incoming: Incoming<ToRunner>,
    pub(crate) outgoing: Outgoing<ToKeeper>,
    pub(crate) killed: CancellationToken,
    calls: u64,
}

struct PlayedProcess(CancellationToken);

impl Process for PlayedProcess {
    fn kill(&mut self) {
        self.0.cancel();
    }

    fn gone(self: Box<Self>) -> BoxFuture<'static, String> {
        async { "gone".to_owned() }.boxed()
    }
}

struct Stage(mpsc::UnboundedSender<PlayedRunner>);

impl Launch for Stage {
    fn runner(&self, _: &RunnerPaths) -> io::Result<Runner> {
        let (socket, theirs) = UnixStream::pair()?;
        let (incoming, outgoing) = split(theirs, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT);
        let killed = CancellationToken::new();
        let runner = PlayedRunner { incoming, outgoing, killed: killed.clone(), calls: 0 };
        self.0.send(runner).map_err(|_| io::Error::other("the test is over"))?;
        Ok(Runner { socket, process: Box::new(PlayedProcess(killed)) })
    }
}

impl PlayedRunner {
    /// Returns the keeper's next message, except grants.
    pub(crate) async fn hears(&mut self) -> ToRunner {
        loop {
            match self.incoming.next().await.unwrap().unwrap().0 {
                ToRunner::Grants(_) => {}
                message => return message,
            }
        }
    }

    pub(crate) async fn hears_start(&mut self) -> Start {
        match self.hears().await {
            ToRunner::Start(start) => *start,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn hears_frame(&mut self) -> FrameLine {
        match self.hears().await {
            ToRunner::Frame(frame) => *frame,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn says(&mut self, message: ToKeeper) {
        self.outgoing.send(&message).await.unwrap();
    }

    pub(crate) async fn calls(&mut self, command: RunnerCommand) -> CallId {
        self.calls += 1;
        let id = CallId(self.calls);
        self.says(ToKeeper::Call { id, call: Call::Command(Box::new(command)), trace: None }).await;
        id
    }

    /// Starts and attaches like every runner.
    pub(crate) async fn attaches(&mut self) -> Start {
        let start = self.hears_start().await;
        self.calls(RunnerCommand::Attach).await;
        assert!(matches!(self.hears().await, ToRunner::Answer { .. }));
        start
    }
}

/// One model's keeper and its surroundings.
pub(crate) struct Scene {
    pub(crate) controller: FakeController,
    pub(crate) watches: mpsc::UnboundedReceiver<OpenedWatch>,
    calls: mpsc::UnboundedReceiver<Vec<RunnerCommand>>,
    runners: mpsc::UnboundedReceiver<PlayedRunner>,
    pub(crate) ended: CancellationToken,
    pub(crate) keeper: JoinHandle<()>,
    _data: tempfile::TempDir,
    _wanted: watch::Sender<BTreeSet<Digest>>,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let data = tempfile::tempdir().unwrap();
        let directories = Arc::new(Directories::open(data.path()).unwrap());
        let (watches, opened) = mpsc::unbounded_channel();
        let (calls, called) = mpsc::unbounded_channel();
        let (stage, runners) = mpsc::unbounded_channel();
        let controller = FakeController::new(watches, calls);
        let options = SandboxOptions { hooks_in_flight: 1, ..SandboxOptions::default() };
        let engine = Sandbox::new(options).unwrap().compatibility_hash();
        let (compiler, limits) = (Arc::new(NoCompiler), CompileLimits::default());
        let charms =
            Arc::new(Charms::new(controller.clone(), Arc::clone(&directories), compiler, engine, limits));
        let program =
            PodProgram { path: "/nonexistent".into(), arguments: Vec::new(), environment: Vec::new() };
        let files = Arc::clone(&charms) as Arc<dyn PodFiles>;
        let pods = PodStarter::new(
            program,
            PodDrivers::default(),
            files,
            HostMemory::new(None),
            (directories.pods(), directories.pod_locks()),
        );
        let shared = Arc::new(Shared {
            agent: "host".parse().unwrap(),
            controller: controller.clone(),
            charms,
            directories,
            api_addresses: vec!["10.0.0.1:17070".to_owned()],
            launch: Arc::new(Stage(stage)),
            pods: Arc::new(pods),
            images: None,
            ingress: IngressHost::new([], []),
            firewall: None,
            own_addresses: Vec::new(),
            egress: Arc::new(EgressHost::new(
                EgressOptions::default(),
                Vec::new(),
                ControllerPlaces::new(Vec::new(), None),
                Arc::new(SystemWay),
            )),
            peers: None,
            hook_capacity: HookCapacity::default(),
            timeline: Timeline::new(Timestamp::now(), BootTime::now().0),
            idle_after: Duration::from_secs(60),
        });
        let (wanted, charms_wanted) = watch::channel(BTreeSet::new());
        let ended = CancellationToken::new();
        let model = ModelUuid(Uuid::from_u128(1));
        let keeper = tokio::spawn(ModelKeeper::new(shared, model, charms_wanted, ended.clone()).run());
        Self {
            controller,
            watches: opened,
            calls: called,
            runners,
            ended,
            keeper,
            _data: data,
            _wanted: wanted,
        }
    }

    /// Waits for the next runner.
    pub(crate) async fn runner(&mut self) -> PlayedRunner {
        self.runners.recv().await.unwrap()
    }

    /// Returns true if the keeper has started another runner.
    pub(crate) fn has_started_another(&mut self) -> bool {
        !self.runners.is_empty()
    }

    pub(crate) async fn watch(&mut self) -> OpenedWatch {
        self.watches.recv().await.unwrap()
    }

    /// Returns the next call to the controller that contains other commands than claims.
    pub(crate) async fn call(&mut self) -> Vec<RunnerCommand> {
        loop {
            let commands = self.calls.recv().await.unwrap();
            if !commands.iter().all(|command| matches!(command, RunnerCommand::Claim(_))) {
                return commands;
            }
        }
    }

    /// Returns the next call to the controller that contains claims.
    pub(crate) async fn claims(&mut self) -> Vec<RunnerCommand> {
        loop {
            let commands = self.calls.recv().await.unwrap();
            if commands.iter().any(|command| matches!(command, RunnerCommand::Claim(_))) {
                return commands;
            }
        }
    }
}

/// Returns the registration of an agent that has not written rules of the firewall yet.
pub(crate) fn host() -> Register {
    Register {
        addresses: vec!["10.0.0.1".into()],
        interfaces: Vec::new(),
        boot_id: "boot".into(),
        hostname: "host".into(),
        availability_zone: String::new(),
        cores: 0,
        tags: BTreeSet::new(),
        version: "1".into(),
        engine: "engine".into(),
        storage_limit: None,
        program: None,
        peer_port: None,
        firewall_problem: None,
        container_problem: None,
    }
}

/// Returns a unit that has run no hook.
pub(crate) fn unit(name: &str, life: Life) -> ViewEntity {
    let name: UnitName = name.parse().unwrap();
    let since = Timestamp::UNIX_EPOCH;
    ViewEntity::Unit(UnitView {
        name,
        life,
        machine: periapt_host_api::MachineId(0),
        principal: None,
        subordinates: BTreeSet::new(),
        resolved: None,
        record: UnitRecord::default(),
        early_number: 0,
        workload_status: StatusInfo::new(WorkloadStatus::Unknown, "", since),
        agent_status: StatusInfo::new(AgentStatus::Allocating, "", since),
    })
}

/// Returns an application that this unit leads.
pub(crate) fn led_by(application: &str, unit: &str) -> ViewEntity {
    ViewEntity::Application(ApplicationView {
        name: application.parse().unwrap(),
        life: Life::Alive,
        charm: CharmRef { digest: Digest::of(b"charm"), modified_version: 0 },
        force_charm: false,
        config: BTreeMap::new(),
        config_hash: String::new(),
        settings_version: 0,
        trust_hash: String::new(),
        trust: false,
        bindings: Default::default(),
        bindings_hash: String::new(),
        leader: Some(Leader { unit: unit.parse().unwrap(), term: LeaderTerm(1) }),
        leader_settings: BTreeMap::new(),
        leader_settings_version: 0,
        update_status_interval: None,
        status: None,
        exposed: false,
        workload_egress: None,
        workload_crash: Default::default(),
        budgets: Default::default(),
        workload_limits: Default::default(),
        resources: BTreeMap::new(),
    })
}

pub(crate) fn frame(from: Option<u64>, to: u64, puts: Vec<ViewEntity>) -> FrameLine {
    let store = StoreId(Uuid::from_u128(9));
    FrameLine {
        store,
        from: from.map(Revision),
        to: Revision(to),
        line: None,
        puts,
        deletes: Vec::new(),
        traces: Vec::new(),
    }
}
