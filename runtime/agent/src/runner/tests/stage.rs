//! A keeper with a real model of a controller: the stage evaluates the runner's calls in the model, and sends the
//! frames of its view. The test is the operator.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::LazyLock,
    time::Duration,
};

use periapt_archive::{Archive, COMPONENT};
use periapt_host_api::{
    ApplicationName, Digest, ModelUuid, StoreId, Timestamp, UnitName,
    action::{ActionConcurrency, ActionReceiver, EnqueueOperation},
    agent::RunnerCommand,
    api::FRAME_LINE_BYTES,
    command::{Answer, Command, Placement},
    commit::{EarlyEffect, EarlyItem, UnitCommit},
    exec::{self, ExecCommand, ExecRequest},
    journal::HookOutcome,
    record::UnitRecord,
    status::AgentStatus,
    trace::{RevisionTrace, TraceContext},
    view::{UnitView, View},
};
use periapt_lab::{Claims, Lab, LabCharm, LabError};
use periapt_sandbox::{ArtifactId, ArtifactKey, Options, Sandbox, SealedArtifact, artifact};
use periapt_telemetry::record::SpanRecord;
use periapt_uniter::{Timeline, WorkloadsTold};
use tokio::{net::UnixStream, task::JoinHandle, time::Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{
    clock::BootTime,
    protocol::{
        Call, CallId, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, Outgoing, ReadyCharm,
        Start, Suspect, ToKeeper, ToRunner, split,
    },
    runner::{RunnerError, serve},
};

/// A charm in C of contract 0.1.0, which the sandbox supports for ever.
const CHARM: &[u8] = include_bytes!("../../../../sandbox/tests/fixtures/hello-0.1.0.charm");

/// The keeper's key.
const KEY: [u8; 32] = [4; 32];

/// The timeout of a test's waits, on a clock that may be paused.
const TIMEOUT: Duration = Duration::from_secs(200);

const STORE: StoreId = StoreId(Uuid::from_u128(9));

/// The agent of the tested runner, and another agent, whose units lead.
const HOST: &str = "host";
const ELSEWHERE: &str = "elsewhere";

/// The charm on disk, compiled once for all tests.
struct OnDisk {
    directory: tempfile::TempDir,
    component: Digest,
    /// The content of `charmcraft.yaml`.
    charmcraft: String,
    artefact: SealedArtifact,
}

static CHARM_ON_DISK: LazyLock<OnDisk> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::read(CHARM).unwrap();
    let component = archive.file(COMPONENT).unwrap();
    let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
    let id = ArtifactId { component: Digest::of(component), engine: sandbox.compatibility_hash() };
    let compiled = sandbox.compile(component).unwrap();
    artifact::write(directory.path(), &id, &ArtifactKey::new(&KEY), &compiled).unwrap();
    std::fs::create_dir(directory.path().join("charm")).unwrap();
    let charmcraft = archive.charm_files().unwrap().charmcraft.unwrap();
    let artefact = artifact::open(directory.path(), &id, &ArtifactKey::new(&KEY)).unwrap();
    OnDisk { directory, component: id.component, charmcraft, artefact }
});

/// The delivery of a commit to the controller.
#[derive(Debug, Clone)]
pub(crate) enum CommitDelivery {
    /// The controller answers the commit.
    Take,
    /// The commit does not arrive.
    Away,
    /// The commit arrives, and its answer is lost.
    Lose,
    /// The commit arrives when the test releases it.
    Hold,
}

/// The actions of a runner, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RunnerAction {
    Started(UnitName, u64),
    Ended(UnitName, u64),
    Committed(Box<UnitCommit>),
    Early(UnitName, Vec<EarlyItem>),
    Offered,
    Left(String),
}

/// A runner's use of a charm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CharmUse {
    Asked(Digest),
    Released(Digest),
}

/// The keeper's side of the tests.
pub(crate) struct Stage {
    incoming: Incoming<ToKeeper>,
    outgoing: Outgoing<ToRunner>,
    pub(crate) runner: JoinHandle<Result<(), RunnerError>>,
    /// A signal for the runner.
    pub(crate) terminate: CancellationToken,
    pub(crate) lab: Lab,
    /// The view as the runner knows it.
    sent: View,
    /// The size of a frame's line, in bytes.
    pub(crate) line_bytes: usize,
    /// The charms that the keeper does not have, with the reasons. Under any other digest it has the one charm.
    pub(crate) away: BTreeMap<Digest, String>,
    /// The verdicts of the next commits. Later commits are answered.
    pub(crate) deliveries: VecDeque<CommitDelivery>,
    pub(crate) did: Vec<RunnerAction>,
    /// The runner's uses of charms that the keeper has.
    pub(crate) code: Vec<CharmUse>,
    held: Vec<(CallId, RunnerCommand)>,
    /// The command that the next frame comes from, if it is traced.
    pub(crate) trace: Option<TraceContext>,
    /// The spans that the runner told of.
    pub(crate) spans: Vec<SpanRecord>,
    /// The steps that its commits belong to.
    pub(crate) traced: Vec<Option<TraceContext>>,
}

/// Returns the first message to a runner in these tests.
pub(super) fn start(suspects: Vec<Suspect>, idle_after_ms: u64) -> Start {
    Start {
        agent: "host".parse().unwrap(),
        model: ModelUuid(Uuid::nil()),
        storage: CHARM_ON_DISK.directory.path().join("storage"),
        api_addresses: vec!["10.0.0.1:17070".to_owned()],
        hooks: 4,
        hook_memory_mib: 1024,
        timeline: Timeline::new(Timestamp::now(), BootTime::now().0),
        idle_after_ms,
        suspects,
        grants: Vec::new(),
        woken_by: Vec::new(),
        workloads: WorkloadsTold::default(),
    }
}

impl Stage {
    /// Starts a runner for new units. A unit of another agent leads each application.
    pub(crate) async fn new(units: &[&str]) -> Self {
        Self::started(model_with(units), start(Vec::new(), 60_000)).await
    }

    /// Starts a runner that runs one hook at a time.
    pub(crate) async fn with_one_place(units: &[&str]) -> Self {
        Self::started(model_with(units), Start { hooks: 1, ..start(Vec::new(), 600_000) }).await
    }

    pub(crate) async fn with_suspects(units: &[&str], suspects: Vec<Suspect>) -> Self {
        Self::started(model_with(units), start(suspects, 60_000)).await
    }

    /// Starts another runner for the same units, after this one has ended.
    pub(crate) async fn again(self) -> Self {
        self.again_with(Vec::new()).await
    }

    /// Starts another runner, with later timers.
    pub(crate) async fn again_after(self, time: Duration) -> Self {
        let timeline = Timeline::new(Timestamp::now() + time, BootTime::now().0);
        self.replaced(Start { timeline, ..start(Vec::new(), 60_000) }).await
    }

    /// Starts another runner, with suspects.
    pub(crate) async fn again_with(self, suspects: Vec<Suspect>) -> Self {
        self.replaced(start(suspects, 60_000)).await
    }

    async fn replaced(self, start: Start) -> Self {
        drop((self.incoming, self.outgoing));
        self.runner.await.unwrap().unwrap();
        Self::started(self.lab, start).await
    }

    async fn started(lab: Lab, start: Start) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (incoming, mut outgoing) = split(ours, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
        let terminate = CancellationToken::new();
        let runner = tokio::spawn(serve(theirs, terminate.clone().cancelled_owned()));
        let begin = ToRunner::Start(Box::new(Start { model: lab.model(), ..start }));
        outgoing.send(&begin).await.unwrap();
        Self {
            incoming,
            outgoing,
            runner,
            terminate,
            lab,
            sent: View::default(),
            line_bytes: FRAME_LINE_BYTES,
            away: BTreeMap::new(),
            deliveries: VecDeque::new(),
            did: Vec::new(),
            code: Vec::new(),
            held: Vec::new(),
            trace: None,
            spans: Vec::new(),
            traced: Vec::new(),
        }
    }

    /// Serves the runner until its actions satisfy `wanted`.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&[RunnerAction]) -> bool) {
        let since = Instant::now();
        while !wanted(&self.did) {
            // The runner sends a heartbeat every few seconds, so this check runs often enough.
            let over = self.did.len() > 500 || since.elapsed() > TIMEOUT;
            assert!(!over, "the runner never comes to that: {:#?}", self.did.last());
            let message = self.incoming.next().await.unwrap().expect("the runner ended").0;
            self.serve(message).await;
        }
    }

    /// Serves the runner until it has told of such spans.
    pub(crate) async fn until_spans(&mut self, wanted: impl Fn(&[SpanRecord]) -> bool) {
        let since = Instant::now();
        while !wanted(&self.spans) {
            assert!(since.elapsed() <= TIMEOUT, "the runner tells of no such spans: {:#?}", self.spans);
            let message = self.incoming.next().await.unwrap().expect("the runner ended").0;
            self.serve(message).await;
        }
    }

    /// Serves the runner for some time, on a clock that may be paused.
    pub(crate) async fn serve_for(&mut self, time: Duration) {
        let since = Instant::now();
        // The runner sends a heartbeat every few seconds.
        while since.elapsed() < time {
            let message = self.incoming.next().await.unwrap().expect("the runner ended").0;
            self.serve(message).await;
        }
    }

    /// Runs the controller's due work, and sends the changes of the view.
    pub(crate) async fn publish(&mut self) {
        self.lab.work().unwrap();
        let view = self.lab.mirror(HOST).unwrap();
        let mut frame = match self.sent.model {
            None => view.full_frame(STORE),
            Some(_) => self.sent.frame_to(&view, STORE),
        };
        let revision = frame.to;
        frame.traces =
            self.trace.take().map(|context| RevisionTrace { revision, context }).into_iter().collect();
        self.sent = view;
        for line in frame.into_lines(self.line_bytes) {
            self.outgoing.send(&ToRunner::Frame(Box::new(line))).await.unwrap();
        }
    }

    /// Makes a change as an operator, and sends it to the runner.
    pub(crate) async fn change<T>(&mut self, change: impl FnOnce(&mut Lab) -> Result<T, LabError>) -> T {
        let done = change(&mut self.lab).unwrap();
        self.publish().await;
        done
    }

    /// Makes config-changed due for an application's units.
    pub(crate) async fn configure(&mut self, application: &str) {
        let trusted = self.lab.state().unwrap().application(&application.parse().unwrap()).unwrap().trust;
        let trust = (!trusted).to_string();
        self.change(|lab| lab.configure(application, &[("trust", &trust)])).await;
    }

    /// Runs a script on a unit as an operator.
    pub(crate) async fn run_script(&mut self, unit: &str, script: &str) {
        let command = ExecCommand::Script(script.to_owned());
        let receivers: Vec<ActionReceiver> = vec![unit.parse().unwrap()];
        let script = Command::EnqueueOperation(EnqueueOperation {
            action: exec::ACTION.to_owned(),
            receivers,
            parameters: ExecRequest {
                command,
                relation: None,
                remote_unit: None,
                container: None,
                stdin: None,
            }
            .into_parameters(),
            turns: ActionConcurrency::default(),
        });
        self.change(|lab| lab.command(&script)).await;
    }

    /// Returns a unit as the controller shows it to its agent.
    pub(crate) fn unit(&self, name: &str) -> UnitView {
        let view = self.lab.mirror(HOST).unwrap();
        view.units.get(&name.parse::<UnitName>().unwrap()).unwrap().clone()
    }

    pub(crate) async fn send(&mut self, message: ToRunner) {
        self.outgoing.send(&message).await.unwrap();
    }

    /// Closes the link, and waits for the runner's end.
    pub(crate) async fn hang_up(self) -> Result<(), RunnerError> {
        drop((self.incoming, self.outgoing));
        self.runner.await.unwrap()
    }

    /// Returns all commits that the runner sent.
    pub(crate) fn commits(&self) -> Vec<&UnitCommit> {
        self.did
            .iter()
            .filter_map(|did| match did {
                RunnerAction::Committed(commit) => Some(&**commit),
                _ => None,
            })
            .collect()
    }

    /// Commits a step of a unit without the runner's knowledge, like another runner.
    pub(crate) fn meddle(&mut self, unit: &str, change: impl FnOnce(&mut UnitRecord)) {
        self.lab.manual_unit(unit).unwrap().commit(|commit| change(&mut commit.record)).unwrap();
    }

    async fn serve(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Call { id, call: Call::Command(command), trace } => {
                if matches!(*command, RunnerCommand::Commit(_)) {
                    self.traced.push(trace);
                }
                self.command(id, *command).await;
            }
            ToKeeper::Call { call: Call::Secret { .. } | Call::Resource { .. }, .. } => {
                panic!("no hook here reads secrets or resources")
            }
            ToKeeper::Call { id, call: Call::Connect { .. }, .. } => {
                let message = "nobody listens: this agent runs no workloads".to_owned();
                self.answer(id, CallOutcome::Away { message }).await;
            }
            ToKeeper::Call { id, call: Call::Charm(digest), .. } => {
                if let Some(message) = self.away.get(&digest).cloned() {
                    return self.answer(id, CallOutcome::Away { message }).await;
                }
                self.code.push(CharmUse::Asked(digest));
                let charm = &*CHARM_ON_DISK;
                let directory: PathBuf = charm.directory.path().join("charm");
                let ready = ReadyCharm {
                    digest,
                    component: charm.component,
                    directory,
                    artefact: Some(charm.artefact.clone()),
                    modules: Vec::new(),
                };
                self.answer(id, CallOutcome::Charm(ready)).await;
            }
            ToKeeper::HookStarted { unit, operation } => {
                self.did.push(RunnerAction::Started(unit, operation.0))
            }
            ToKeeper::HookEnded { unit, operation, .. } => {
                self.did.push(RunnerAction::Ended(unit, operation.0))
            }
            ToKeeper::Idle { position, .. } => {
                assert_eq!((position.store, position.revision), (STORE, self.sent.revision));
                self.did.push(RunnerAction::Offered);
            }
            ToKeeper::Ending { reason } => self.did.push(RunnerAction::Left(reason)),
            ToKeeper::Resync => panic!("the frames fit"),
            ToKeeper::Released(digest) => self.code.push(CharmUse::Released(digest)),
            ToKeeper::Spans(records) => self.spans.extend(records),
            ToKeeper::Noted { .. } | ToKeeper::Alive(_) => {}
        }
    }

    async fn command(&mut self, id: CallId, command: RunnerCommand) {
        let news = match &command {
            RunnerCommand::Attach => true,
            RunnerCommand::Early { unit, items, .. } => {
                self.did.push(RunnerAction::Early(unit.clone(), items.clone()));
                true
            }
            RunnerCommand::Commit(commit) => {
                self.did.push(RunnerAction::Committed(commit.clone()));
                match self.deliveries.pop_front().unwrap_or(CommitDelivery::Take) {
                    CommitDelivery::Take => true,
                    CommitDelivery::Lose => {
                        self.evaluate(command);
                        let message = "the answer was lost".to_owned();
                        return self.answer(id, CallOutcome::Away { message }).await;
                    }
                    CommitDelivery::Away => {
                        let message = "nobody answers".to_owned();
                        return self.answer(id, CallOutcome::Away { message }).await;
                    }
                    CommitDelivery::Hold => return self.held.push((id, command)),
                }
            }
            RunnerCommand::Claim(_)
            | RunnerCommand::Storage { .. }
            | RunnerCommand::Container { .. }
            | RunnerCommand::Workloads { .. } => false,
        };
        let outcome = self.evaluate(command);
        // A refused runner learns of the cause by the stream, which a test may delay.
        let news = news && !matches!(outcome, CallOutcome::Refused(_));
        self.answer(id, outcome).await;
        if news {
            self.publish().await;
        }
    }

    /// Releases the held commits.
    pub(crate) async fn let_through(&mut self) {
        for (id, command) in std::mem::take(&mut self.held) {
            let outcome = self.evaluate(command);
            self.answer(id, outcome).await;
        }
        self.publish().await;
    }

    /// Returns the controller's answer to a command.
    fn evaluate(&mut self, command: RunnerCommand) -> CallOutcome {
        match self.lab.call(HOST, command) {
            Ok(answer) => {
                let revision = self.lab.root().revision();
                CallOutcome::Answered { answer, revision, sent_at: BootTime::now() }
            }
            Err(LabError::Refused(refusal)) => CallOutcome::Refused(refusal),
            Err(other) => panic!("{other}"),
        }
    }

    async fn answer(&mut self, id: CallId, outcome: CallOutcome) {
        self.outgoing.send(&ToRunner::Answer { id, outcome }).await.unwrap();
    }
}

/// Returns the hooks of some commits with their outcomes.
pub(crate) fn hooks(commits: &[&UnitCommit]) -> Vec<(String, HookOutcome)> {
    commits
        .iter()
        .filter_map(|commit| commit.journal.as_ref())
        .map(|journal| (journal.event.hook_name(), journal.outcome.clone()))
        .collect()
}

/// Returns true if the unit's last status is idle.
pub(crate) fn is_idle(did: &[RunnerAction], name: &str) -> bool {
    let name: UnitName = name.parse().unwrap();
    did.iter().rev().find_map(|did| match did {
        RunnerAction::Early(unit, items) if *unit == name => {
            Some(items.iter().any(|item| {
                matches!(item.effect, EarlyEffect::AgentStatus { status: AgentStatus::Idle, .. })
            }))
        }
        RunnerAction::Committed(commit) if commit.unit == name => Some(false),
        _ => None,
    }) == Some(true)
}

/// Returns a version of the charm.
pub(crate) fn charm(version: u64) -> LabCharm {
    charm_with(&format!("# {version}"))
}

/// Returns the charm with more metadata.
pub(crate) fn charm_with(more: &str) -> LabCharm {
    LabCharm::new(&format!("{}\n{more}\n", CHARM_ON_DISK.charmcraft)).unwrap()
}

/// Creates a model with these new units, each on its own machine.
fn model_with(units: &[&str]) -> Lab {
    let mut lab = Lab::new(1).unwrap();
    // The runner's keeper claims no leadership.
    lab.set_claims(HOST, Claims::Unsent).unwrap();
    lab.add_agent(ELSEWHERE).unwrap();
    let application_of = |unit: &&str| unit.split_once('/').unwrap().0.to_owned();
    let applications: BTreeSet<String> = units.iter().map(application_of).collect();
    for application in applications {
        let own = units.iter().filter(|unit| application_of(unit) == application).count();
        deploy(&mut lab, &application, &charm(1), u32::try_from(own).unwrap()).unwrap();
    }
    for unit in units {
        lab.unit(unit).unwrap();
    }
    lab
}

/// Deploys an application with units on the runner's agent, led by a unit of another agent.
pub(crate) fn deploy(lab: &mut Lab, application: &str, charm: &LabCharm, units: u32) -> Result<(), LabError> {
    lab.deploy_to(application, charm, units, HOST)?;
    add_unit(lab, application, Placement::Agent(ELSEWHERE.parse()?))?;
    lab.tend()
}

/// Adds a unit with a placement.
fn add_unit(lab: &mut Lab, application: &str, placement: Placement) -> Result<UnitName, LabError> {
    let application: ApplicationName = application.parse()?;
    let placement = vec![placement];
    let add = Command::AddUnits { application, count: 1, placement, attach_storage: Vec::new() };
    match lab.command(&add)? {
        Answer::Units { mut units } => Ok(units.remove(0)),
        other => panic!("{other:?}"),
    }
}

/// Adds a unit of the same application on the machine of another unit.
pub(crate) fn add_unit_beside(lab: &mut Lab, unit: &str) -> Result<UnitName, LabError> {
    let found = lab.unit(unit)?;
    let (application, machine) = (found.name.application().to_string(), found.machine.unwrap());
    add_unit(lab, &application, Placement::Machine(machine))
}
