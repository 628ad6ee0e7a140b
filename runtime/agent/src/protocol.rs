//! The protocol between a keeper and its runner: one closed enum for each direction, as length-delimited JSON over an
//! inherited socketpair. The socket is the runner's identity: a runner names neither its agent nor its model, and the
//! keeper adds both to the calls that it forwards. Compiled components, resources and streams to workloads go to a runner as
//! descriptors beside the messages.

use std::{
    fs::File,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    sync::Arc,
};

use periapt_hook::WorkloadTarget;
use periapt_host_api::{
    AgentName, Digest, LeaderTerm, ModelUuid, OperationId, Refusal, Revision, Timestamp, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    api::{MAX_LINE_BYTES, WatchPosition},
    commit::EarlyItem,
    journal::HookCosts,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    trace::{RevisionTrace, TraceContext},
    view::FrameLine,
};
use periapt_sandbox::{PoolStatistics, SealedArtifact};
use periapt_telemetry::record::SpanRecord;
use periapt_uniter::{
    HookRun, NoticesTold, Timeline, WorkloadsChanged, WorkloadsKnown, WorkloadsTold,
    executor::{Returned, RunReport},
};
use serde::{Deserialize, Serialize};

use crate::clock::BootTime;

mod codec;
mod descriptors;

pub use codec::LinkError;
use codec::Message;
pub(crate) use codec::{Incoming, Outgoing, split};
use descriptors::Descriptors;

/// The most bytes of a runner's message. A commit has at most 1 MiB of effects; journal and early items have their own
/// limits. The keeper ends a runner that sends more.
pub(crate) const FROM_RUNNER_LIMIT: usize = 4 << 20;

/// The most bytes of a keeper's message. The largest is a line of a watch.
pub(crate) const FROM_KEEPER_LIMIT: usize = MAX_LINE_BYTES + (1 << 20);

/// The most calls of one runner in flight. At this limit the keeper stops reading until a call is answered.
pub(crate) const CALLS_OUTSTANDING: usize = 64;

/// The number of a call, unique for its runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CallId(pub(crate) u64);

/// A message of a keeper to its runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToRunner {
    /// The first message, with the runner's parameters.
    Start(Box<Start>),
    /// A line of the watch.
    Frame(Box<FrameLine>),
    /// The answer to one call.
    Answer {
        /// The call.
        id: CallId,
        /// The outcome.
        outcome: CallOutcome,
    },
    /// New and renewed leases.
    Grants(Vec<Grant>),
    /// The workloads that listen now.
    Workloads(WorkloadsTold),
    /// The workloads that listen now, of the units for which some began or ended.
    WorkloadsChanged(WorkloadsChanged),
    /// Notices of workloads that listen.
    Notices(NoticesTold),
    /// A request to end. Hooks in flight are abandoned, and run again later (U-13).
    Exit,
}

/// The parameters of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Start {
    /// The agent of the runner.
    pub(crate) agent: AgentName,
    /// The model of the runner.
    pub(crate) model: ModelUuid,
    /// The directory of the units' storage, created on demand.
    pub(crate) storage: PathBuf,
    /// The controller's hosts and ports, for hooks.
    pub(crate) api_addresses: Vec<String>,
    /// The most concurrent hooks.
    pub(crate) hooks: usize,
    /// The most memory of all budgets together, in MiB.
    pub(crate) hook_memory_mib: u32,
    /// The timeline of the units' timers. It belongs to the agent, so it outlives the runner.
    pub(crate) timeline: Timeline,
    /// The time without due work after which the runner offers to exit, in milliseconds.
    pub(crate) idle_after_ms: u64,
    /// The hooks that were in flight when earlier runners died.
    pub(crate) suspects: Vec<Suspect>,
    /// The leases that the keeper holds for the units.
    pub(crate) grants: Vec<Grant>,
    /// The traced commands because of which it is started.
    pub(crate) woken_by: Vec<RevisionTrace>,
    /// The workloads that listen.
    pub(crate) workloads: WorkloadsTold,
}

/// A hook that was in flight when its runner died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Suspect {
    /// The unit.
    pub(crate) unit: UnitName,
    /// The operation.
    pub(crate) operation: OperationId,
    /// The number of runners that died with the hook in flight.
    pub(crate) deaths: u32,
}

/// A unit's lease, with its expiry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Grant {
    /// The leading unit.
    pub(crate) unit: UnitName,
    /// The fencing token.
    pub(crate) term: LeaderTerm,
    /// The expiry, counted from the time at which the request was *sent*.
    pub(crate) until: BootTime,
}

/// A message of a runner to its keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToKeeper {
    /// A call; exactly one answer follows.
    Call {
        /// The number that the runner chose.
        id: CallId,
        /// The call.
        call: Call,
        /// The step of a trace that asks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        trace: Option<TraceContext>,
    },
    /// The start of a hook.
    HookStarted {
        /// The unit.
        unit: UnitName,
        /// The operation.
        operation: OperationId,
    },
    /// The end of a hook: it was committed, dropped, or is not due any more.
    HookEnded {
        /// The unit.
        unit: UnitName,
        /// The operation.
        operation: OperationId,
        /// The figures of the run for the agent's metrics; none if it did not run to its end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        figures: Option<Box<RunFigures>>,
    },
    /// Early effects of a running hook. The keeper sends them if the runner dies before it does.
    Noted {
        /// The unit.
        unit: UnitName,
        /// The items, in order.
        items: Vec<EarlyItem>,
    },
    /// An offer to exit, as no work is due.
    Idle {
        /// The position of the runner's view.
        position: WatchPosition,
        /// The time at which work is due even without a change.
        wake_at: Option<Timestamp>,
        /// The extent to which the units know the workloads beside them.
        #[serde(default)]
        workloads: WorkloadsKnown,
    },
    /// A charm whose code the runner has unmapped. It requests the charm again before its next hook.
    Released(Digest),
    /// A request for the whole view, because a frame did not fit.
    Resync,
    /// A heartbeat, sent every few seconds, with what the runner's pool holds.
    Alive(PoolUse),
    /// Spans that have ended. They may be lost.
    Spans(Vec<SpanRecord>),
    /// An end on purpose, after which no hook is suspect.
    Ending {
        /// The reason.
        reason: String,
    },
}

/// The figures of one run of a hook or an action, for metrics.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct RunFigures {
    /// The kind of its event, one of [`EVENT_KINDS`](periapt_host_api::event::EVENT_KINDS).
    pub(crate) event: String,
    /// The way in which the handler returned.
    pub(crate) outcome: RunOutcome,
    /// 1 for the first attempt.
    pub(crate) attempt: u32,
    /// The wall time in microseconds.
    pub(crate) wall_us: u64,
    /// The fuel that it used.
    pub(crate) fuel: u64,
    /// The most linear memory that it had, in bytes.
    pub(crate) memory: u64,
}

impl RunFigures {
    /// Takes the figures from a run's report.
    pub(crate) fn of(run: &HookRun, report: &RunReport) -> Self {
        let HookCosts { fuel, memory, wall_us, .. } = report.costs;
        let outcome = RunOutcome::from(&report.returned);
        Self { event: run.event.kind().to_owned(), outcome, attempt: run.attempt, wall_us, fuel, memory }
    }
}

/// The way in which a handler returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RunOutcome {
    /// It returned ok.
    Handled,
    /// The charm has no handler for the event.
    Unhandled,
    /// It failed, trapped or ran out of a budget.
    Failed,
    /// An operator's tool came to its end.
    Exited,
    /// An operator cancelled it.
    Stopped,
}

impl RunOutcome {
    /// The names of all outcomes.
    pub(crate) const NAMES: [&str; 5] = ["handled", "unhandled", "failed", "exited", "stopped"];

    /// Returns its name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Handled => "handled",
            Self::Unhandled => "unhandled",
            Self::Failed => "failed",
            Self::Exited => "exited",
            Self::Stopped => "stopped",
        }
    }
}

impl From<&Returned> for RunOutcome {
    fn from(returned: &Returned) -> Self {
        match returned {
            Returned::Handled => Self::Handled,
            Returned::Unhandled => Self::Unhandled,
            Returned::Failed { .. } => Self::Failed,
            Returned::Exited { .. } => Self::Exited,
            Returned::Stopped => Self::Stopped,
        }
    }
}

/// The use of a runner's pool of instances.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct PoolUse {
    /// Instances of hooks in flight.
    pub(crate) instances: u64,
    /// Memories that are kept for the next hook of the same component.
    pub(crate) warm_memories: u64,
    /// Bytes that stay resident in these memories.
    pub(crate) warm_bytes: u64,
}

impl From<PoolStatistics> for PoolUse {
    fn from(pool: PoolStatistics) -> Self {
        Self { instances: pool.instances, warm_memories: pool.slots.into(), warm_bytes: pool.bytes }
    }
}

/// A call of a runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    /// A command for the controller.
    Command(Box<RunnerCommand>),
    /// A request for a secret that a unit may read, from the controller.
    Secret {
        /// The unit whose hook reads it.
        unit: UnitName,
        /// The secret and its revision.
        key: SecretKey,
    },
    /// A request for a resource that a unit may read.
    Resource {
        /// The unit whose hook reads it.
        unit: UnitName,
        /// The resource and its content.
        key: ResourceKey,
    },
    /// A request for a charm's files and compiled component.
    Charm(Digest),
    /// A request for a stream to a workload of a unit.
    Connect {
        /// The unit whose hook asks.
        unit: UnitName,
        /// The other end.
        target: WorkloadTarget,
    },
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallOutcome {
    /// The controller carried out the command.
    Answered {
        /// The controller's answer.
        answer: RunnerAnswer,
        /// The revision with the effect.
        revision: Revision,
        /// The time at which the keeper sent the request.
        sent_at: BootTime,
    },
    /// The charm is in place.
    Charm(ReadyCharm),
    /// The content of a secret.
    Secret(SecretData),
    /// The content of a resource.
    Resource(HeldFile),
    /// A connected stream.
    Stream(HeldFile),
    /// The call had no effect, and another attempt would be refused, too.
    Refused(Refusal),
    /// The outcome is unknown; the caller repeats the call.
    Away {
        /// The cause.
        message: String,
    },
}

/// A charm that is ready to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ReadyCharm {
    /// The archive's digest.
    pub(crate) digest: Digest,
    /// The component's digest.
    pub(crate) component: Digest,
    /// The directory of the charm's own files, read-only.
    pub(crate) directory: PathBuf,
    /// The compiled component, checked by the keeper. It travels as a descriptor beside the message, and is missing
    /// only in messages of a faulty sender.
    #[serde(skip)]
    pub(crate) artefact: Option<SealedArtifact>,
    /// The component's shared modules.
    pub(crate) modules: Vec<ReadyModule>,
}

/// A shared module in native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ReadyModule {
    /// The module's digest, by which components import it.
    pub(crate) digest: Digest,
    /// The compiled module, like that of [`ReadyCharm`].
    #[serde(skip)]
    pub(crate) artefact: Option<SealedArtifact>,
}

/// An open file for reading, or a stream. It travels as a descriptor beside the message, and is missing only in messages of a faulty
/// sender.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct HeldFile {
    #[serde(skip)]
    pub(crate) file: Option<Arc<File>>,
}

impl HeldFile {
    /// Holds a stream.
    pub(crate) fn of(stream: UnixStream) -> Self {
        Self { file: Some(Arc::new(File::from(OwnedFd::from(stream)))) }
    }
}

/// Equality means the same descriptor, not the same content.
impl PartialEq for HeldFile {
    fn eq(&self, other: &Self) -> bool {
        match (&self.file, &other.file) {
            (Some(file), Some(other)) => Arc::ptr_eq(file, other),
            (None, None) => true,
            _ => false,
        }
    }
}

impl Message for ToKeeper {}

impl Message for ToRunner {
    const DESCRIPTORS: Descriptors = Descriptors::Taken;

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Answer { outcome: CallOutcome::Charm(ready), .. } => {
                let modules = ready.modules.iter().filter_map(|module| module.artefact.as_ref());
                ready.artefact.iter().chain(modules).map(AsFd::as_fd).collect()
            }
            Self::Answer { outcome: CallOutcome::Resource(held) | CallOutcome::Stream(held), .. } => {
                held.file.iter().map(|file| file.as_fd()).collect()
            }
            _ => Vec::new(),
        }
    }

    fn attach(&mut self, next: &mut dyn FnMut() -> Option<OwnedFd>) {
        match self {
            Self::Answer { outcome: CallOutcome::Charm(ready), .. } => {
                ready.artefact = next().and_then(received);
                for module in &mut ready.modules {
                    module.artefact = next().and_then(received);
                }
            }
            Self::Answer { outcome: CallOutcome::Resource(held) | CallOutcome::Stream(held), .. } => {
                held.file = next().map(|descriptor| Arc::new(File::from(descriptor)));
            }
            _ => {}
        }
    }
}

fn received(descriptor: OwnedFd) -> Option<SealedArtifact> {
    #[expect(
        unsafe_code,
        reason = "only the keeper writes to this end's socket, which this process inherited from it; its code runs \
                  here anyway, and it checks each MAC"
    )]
    let artefact = unsafe { SealedArtifact::received(descriptor) };
    artefact.map_err(|error| tracing::warn!(%error, "a compiled component cannot be used")).ok()
}
