//! A keeper with a small controller behind it: it takes what commits say into a view, and sends the difference.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::PathBuf,
    sync::LazyLock,
    time::Duration,
};

use periapt_archive::{Archive, COMPONENT};
use periapt_host_api::{
    CharmDigest, Incarnation, LeaderTerm, MachineId, ModelUuid, Refusal, Revision, StoreId, Timestamp,
    UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    api::FRAME_LINE_BYTES,
    charm::CharmMeta,
    commit::{EarlyEffect, EarlyItem, UnitCommit},
    journal::HookOutcome,
    record::{CharmRef, UnitRecord},
    settings::ModelConfig,
    status::{AgentStatus, Life, StatusInfo, WorkloadStatus},
    view::{ApplicationView, CharmView, Leader, MachineView, ModelView, UnitView, View},
};
use periapt_sandbox::{ArtifactId, ArtifactKey, Options, Sandbox, SealedArtifact, artifact};
use periapt_uniter::Timeline;
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

/// A charm in C of contract 0.1.0, which the sandbox keeps for ever.
const CHARM: &[u8] = include_bytes!("../../../../sandbox/tests/fixtures/hello-0.1.0.charm");

/// The keeper's alone.
const KEY: [u8; 32] = [4; 32];

/// How long a test waits for its runner, by a clock that may be paused.
const PATIENCE: Duration = Duration::from_secs(200);

const STORE: StoreId = StoreId(Uuid::from_u128(9));

/// The charm on disk, compiled once for all tests.
struct OnDisk {
    directory: tempfile::TempDir,
    digest: CharmDigest,
    component: CharmDigest,
    meta: CharmMeta,
    artefact: SealedArtifact,
}

static CHARM_ON_DISK: LazyLock<OnDisk> = LazyLock::new(|| {
    let directory = tempfile::tempdir().unwrap();
    let archive = Archive::read(CHARM).unwrap();
    let component = archive.file(COMPONENT).unwrap();
    let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() }).unwrap();
    let id = ArtifactId { component: CharmDigest::of(component), engine: sandbox.compatibility_hash() };
    let compiled = sandbox.compile(component).unwrap();
    artifact::write(directory.path(), &id, &ArtifactKey::new(&KEY), &compiled).unwrap();
    std::fs::create_dir(directory.path().join("charm")).unwrap();
    let meta = CharmMeta::parse(&archive.charm_files().unwrap()).unwrap();
    let artefact = artifact::open(directory.path(), &id, &ArtifactKey::new(&KEY)).unwrap();
    OnDisk { directory, digest: CharmDigest::of(CHARM), component: id.component, meta, artefact }
});

/// How a commit is answered.
#[derive(Debug, Clone)]
pub(crate) enum Verdict {
    /// It happens.
    Take,
    /// Nobody knows.
    Away,
    /// It does not happen.
    Refuse(Refusal),
    /// It happens, and nobody hears of it.
    Lose,
    /// It happens when it is let through.
    Hold,
}

/// What a runner did, in order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Did {
    Started(UnitName, u64),
    Ended(UnitName, u64),
    Committed(Box<UnitCommit>),
    Early(UnitName, Vec<EarlyItem>),
    Offered,
    Left(String),
}

/// What a runner did with a charm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Code {
    Asked(CharmDigest),
    Released(CharmDigest),
}

/// The keeper's side.
pub(crate) struct Stage {
    incoming: Incoming<ToKeeper>,
    outgoing: Outgoing<ToRunner>,
    pub(crate) runner: JoinHandle<Result<(), RunnerError>>,
    /// A signal for the runner.
    pub(crate) terminate: CancellationToken,
    pub(crate) view: View,
    sent: View,
    /// How much of a frame is sent in one line.
    pub(crate) line_bytes: usize,
    /// Charms that the keeper does not have, and why. It has one charm, whatever digest it is asked for.
    pub(crate) away: BTreeMap<CharmDigest, String>,
    /// For the commits to come; when there are none left, each is taken.
    pub(crate) verdicts: VecDeque<Verdict>,
    pub(crate) did: Vec<Did>,
    /// Of charms that the keeper has.
    pub(crate) code: Vec<Code>,
    held: Vec<(CallId, Box<UnitCommit>)>,
}

/// How a runner is started in these tests, before suspects.
fn start(suspects: Vec<Suspect>, idle_after_ms: u64) -> Start {
    Start {
        agent: "host".parse().unwrap(),
        model: ModelUuid(Uuid::from_u128(1)),
        storage: CHARM_ON_DISK.directory.path().join("storage"),
        api_addresses: vec!["10.0.0.1:17070".to_owned()],
        hooks: 4,
        hook_memory_mib: 1024,
        timeline: Timeline::new(Timestamp::now(), BootTime::now().0),
        idle_after_ms,
        suspects,
        grants: Vec::new(),
    }
}

impl Stage {
    /// Starts a runner for new units of one application.
    pub(crate) async fn new(units: &[&str]) -> Self {
        Self::started(units, start(Vec::new(), 60_000)).await
    }

    /// One hook runs at a time.
    pub(crate) async fn with_one_place(units: &[&str]) -> Self {
        Self::started(units, Start { hooks: 1, ..start(Vec::new(), 600_000) }).await
    }

    pub(crate) async fn with_suspects(units: &[&str], suspects: Vec<Suspect>, idle_after_ms: u64) -> Self {
        Self::started(units, start(suspects, idle_after_ms)).await
    }

    async fn started(units: &[&str], start: Start) -> Self {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (incoming, mut outgoing) = split(ours, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
        let terminate = CancellationToken::new();
        let runner = tokio::spawn(serve(theirs, terminate.clone().cancelled_owned()));
        let begin = ToRunner::Start(Box::new(start));
        outgoing.send(&begin).await.unwrap();
        let view = view(units);
        Self {
            incoming,
            outgoing,
            runner,
            terminate,
            view,
            sent: View::default(),
            line_bytes: FRAME_LINE_BYTES,
            away: BTreeMap::new(),
            verdicts: VecDeque::new(),
            did: Vec::new(),
            code: Vec::new(),
            held: Vec::new(),
        }
    }

    /// Serves the runner until what it did is as wanted.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&[Did]) -> bool) {
        let since = Instant::now();
        while !wanted(&self.did) {
            // It says that it lives every few seconds, so this is looked at however little else it says.
            let over = self.did.len() > 500 || since.elapsed() > PATIENCE;
            assert!(!over, "the runner never comes to that: {:#?}", self.did.last());
            let message = self.incoming.next().await.unwrap().expect("the runner ended").0;
            self.serve(message).await;
        }
    }

    /// Serves the runner for some time, by a clock that may be paused.
    pub(crate) async fn serve_for(&mut self, time: Duration) {
        let since = Instant::now();
        // It says that it lives every few seconds.
        while since.elapsed() < time {
            let message = self.incoming.next().await.unwrap().expect("the runner ended").0;
            self.serve(message).await;
        }
    }

    /// Sends what has changed in the view.
    pub(crate) async fn publish(&mut self) {
        self.view.revision = Revision(self.view.revision.0 + 1);
        let frame = match self.sent.model {
            None => self.view.full_frame(STORE),
            Some(_) => self.sent.frame_to(&self.view, STORE),
        };
        self.sent = self.view.clone();
        for line in frame.into_lines(self.line_bytes) {
            self.outgoing.send(&ToRunner::Frame(Box::new(line))).await.unwrap();
        }
    }

    pub(crate) async fn tell(&mut self, message: ToRunner) {
        self.outgoing.send(&message).await.unwrap();
    }

    /// Goes away, and waits for the runner's end.
    pub(crate) async fn hang_up(self) -> Result<(), RunnerError> {
        drop((self.incoming, self.outgoing));
        self.runner.await.unwrap()
    }

    /// All commits that the runner sent.
    pub(crate) fn commits(&self) -> Vec<&UnitCommit> {
        self.did
            .iter()
            .filter_map(|did| match did {
                Did::Committed(commit) => Some(&**commit),
                _ => None,
            })
            .collect()
    }

    /// Changes a unit's record behind the runner's back, as another runner would.
    pub(crate) fn meddle(&mut self, unit: &str, change: impl FnOnce(&mut UnitRecord)) {
        let unit = self.view.units.get_mut(&unit.parse::<UnitName>().unwrap()).unwrap();
        change(&mut unit.record);
    }

    async fn serve(&mut self, message: ToKeeper) {
        match message {
            ToKeeper::Call { id, call: Call::Command(command) } => self.command(id, *command).await,
            ToKeeper::Call { call: Call::Secret { .. } | Call::Resource { .. }, .. } => {
                panic!("no hook here reads secrets or resources")
            }
            ToKeeper::Call { id, call: Call::Charm(digest) } => {
                if let Some(message) = self.away.get(&digest).cloned() {
                    return self.answer(id, CallOutcome::Away { message }).await;
                }
                self.code.push(Code::Asked(digest));
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
            ToKeeper::HookStarted { unit, operation } => self.did.push(Did::Started(unit, operation.0)),
            ToKeeper::HookEnded { unit, operation } => self.did.push(Did::Ended(unit, operation.0)),
            ToKeeper::Idle { position, .. } => {
                assert_eq!((position.store, position.revision), (STORE, self.view.revision));
                self.did.push(Did::Offered);
            }
            ToKeeper::Ending { reason } => self.did.push(Did::Left(reason)),
            ToKeeper::Resync => panic!("the frames fit"),
            ToKeeper::Released(digest) => self.code.push(Code::Released(digest)),
            ToKeeper::Noted { .. } | ToKeeper::Alive => {}
        }
    }

    async fn command(&mut self, id: CallId, command: RunnerCommand) {
        let answered = match command {
            RunnerCommand::Attach => {
                let answer = RunnerAnswer::Attached { incarnation: Incarnation(7) };
                self.answer(id, self.done(answer)).await;
                return self.publish().await;
            }
            RunnerCommand::Storage { .. } => panic!("the stage's charm has no storage"),
            RunnerCommand::Claim(_) => RunnerAnswer::Held { holder: "app/9".parse().unwrap() },
            RunnerCommand::Early { unit, incarnation, items } => {
                assert_eq!(incarnation, Incarnation(7));
                self.take_early(&unit, &items);
                self.did.push(Did::Early(unit, items));
                RunnerAnswer::Done
            }
            RunnerCommand::Commit(commit) => {
                assert_eq!(commit.incarnation, Incarnation(7));
                self.did.push(Did::Committed(commit.clone()));
                match self.verdicts.pop_front().unwrap_or(Verdict::Take) {
                    Verdict::Take => {
                        self.take(&commit);
                        RunnerAnswer::Done
                    }
                    Verdict::Lose => {
                        self.take(&commit);
                        let message = "the answer was lost".to_owned();
                        return self.answer(id, CallOutcome::Away { message }).await;
                    }
                    Verdict::Away => {
                        let message = "nobody answers".to_owned();
                        return self.answer(id, CallOutcome::Away { message }).await;
                    }
                    Verdict::Refuse(refusal) => {
                        return self.answer(id, CallOutcome::Refused(refusal)).await;
                    }
                    Verdict::Hold => return self.held.push((id, commit)),
                }
            }
        };
        self.answer(id, self.done(answered)).await;
        self.publish().await;
    }

    /// Lets the commits through that were held.
    pub(crate) async fn let_through(&mut self) {
        for (id, commit) in std::mem::take(&mut self.held) {
            self.take(&commit);
            self.answer(id, self.done(RunnerAnswer::Done)).await;
        }
        self.publish().await;
    }

    fn done(&self, answer: RunnerAnswer) -> CallOutcome {
        CallOutcome::Answered { answer, revision: self.view.revision, sent_at: BootTime::now() }
    }

    async fn answer(&mut self, id: CallId, outcome: CallOutcome) {
        self.outgoing.send(&ToRunner::Answer { id, outcome }).await.unwrap();
    }

    fn take(&mut self, commit: &UnitCommit) {
        let unit = self.view.units.get_mut(&commit.unit).unwrap();
        assert_eq!(commit.seq, unit.record.seq, "a commit starts from the newest record");
        assert_eq!(commit.record.seq, commit.seq + 1);
        unit.record = commit.record.clone();
        if commit.transitions.clear_resolved {
            unit.resolved = None;
        }
        if commit.transitions.terminate {
            unit.life = Life::Dead;
        }
        self.take_early(&commit.unit, &commit.early);
    }

    fn take_early(&mut self, unit: &UnitName, items: &[EarlyItem]) {
        let unit = self.view.units.get_mut(unit).unwrap();
        for item in items {
            assert_eq!(item.number, unit.early_number + 1, "no number is left out or comes twice");
            unit.early_number = item.number;
            match &item.effect {
                EarlyEffect::UnitStatus { status, message } => {
                    unit.workload_status = StatusInfo::new(*status, message, item.at);
                }
                EarlyEffect::AgentStatus { status, message, .. } => {
                    unit.agent_status = StatusInfo::new(*status, message, item.at);
                }
                _ => {}
            }
        }
    }
}

/// The hooks of some commits, with how they ended.
pub(crate) fn hooks(commits: &[&UnitCommit]) -> Vec<(String, HookOutcome)> {
    commits
        .iter()
        .filter_map(|commit| commit.journal.as_ref())
        .map(|journal| (journal.event.hook_name(), journal.outcome.clone()))
        .collect()
}

/// Whether the last thing that a unit said is that it is idle.
pub(crate) fn is_idle(did: &[Did], name: &str) -> bool {
    let name: UnitName = name.parse().unwrap();
    did.iter().rev().find_map(|did| match did {
        Did::Early(unit, items) if *unit == name => {
            Some(items.iter().any(|item| {
                matches!(item.effect, EarlyEffect::AgentStatus { status: AgentStatus::Idle, .. })
            }))
        }
        Did::Committed(commit) if commit.unit == name => Some(false),
        _ => None,
    }) == Some(true)
}

fn view(units: &[&str]) -> View {
    let charm = &*CHARM_ON_DISK;
    let reference = CharmRef { digest: charm.digest, modified_version: 1 };
    let since = Timestamp::UNIX_EPOCH;
    let mut view = View {
        model: Some(ModelView {
            uuid: ModelUuid(Uuid::from_u128(1)),
            name: "test".parse().unwrap(),
            life: Life::Alive,
            config: ModelConfig::default(),
            spaces: Default::default(),
        }),
        ..View::default()
    };
    let application = ApplicationView {
        name: "app".parse().unwrap(),
        life: Life::Alive,
        charm: reference,
        force_charm: false,
        config: BTreeMap::new(),
        config_hash: "config".to_owned(),
        settings_version: 0,
        trust_hash: "trust".to_owned(),
        trust: false,
        // A unit of another agent leads.
        leader: Some(Leader { unit: "app/99".parse().unwrap(), term: LeaderTerm(1) }),
        leader_settings: BTreeMap::new(),
        leader_settings_version: 0,
        bindings: Default::default(),
        bindings_hash: String::new(),
        update_status_interval: None,
        status: None,
        exposed: false,
        budgets: periapt_host_api::budget::BudgetSettings::default(),
        resources: Default::default(),
    };
    view.applications.insert(application.name.clone(), application);
    let charm_view =
        CharmView { digest: charm.digest, component: charm.component, revision: 0, meta: charm.meta.clone() };
    view.charms.insert(charm.digest, charm_view);
    for (number, name) in (0..).zip(units) {
        let name: UnitName = name.parse().unwrap();
        let machine = MachineId(number);
        let unit = UnitView {
            name: name.clone(),
            life: Life::Alive,
            machine,
            principal: None,
            subordinates: BTreeSet::new(),
            resolved: None,
            record: UnitRecord::default(),
            early_number: 0,
            workload_status: StatusInfo::new(WorkloadStatus::Unknown, "", since),
            agent_status: StatusInfo::new(AgentStatus::Allocating, "", since),
        };
        view.units.insert(name, unit);
        let host = MachineView {
            id: machine,
            agent: "host".parse().unwrap(),
            boot_id: "boot".to_owned(),
            addresses: vec!["10.0.0.1".to_owned()],
            interfaces: Vec::new(),
            ingress: Default::default(),
            addresses_hash: "addresses".to_owned(),
            availability_zone: String::new(),
            ports: BTreeMap::new(),
        };
        view.machines.insert(machine, host);
    }
    view
}
