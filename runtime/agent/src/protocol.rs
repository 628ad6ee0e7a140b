//! What a keeper and its runner say to each other: one closed enum each way, as length-delimited JSON over an
//! inherited socketpair. The socket is the runner's identity; neither agent nor model is named by a runner, the
//! keeper stamps both on what it forwards. Compiled components and resources go to a runner as descriptors beside the messages.

use std::{
    fs::File,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    path::PathBuf,
    sync::Arc,
};

use periapt_host_api::{
    AgentName, Digest, LeaderTerm, ModelUuid, OperationId, Refusal, Revision, Timestamp, UnitName,
    agent::{RunnerAnswer, RunnerCommand},
    api::{MAX_LINE_BYTES, WatchPosition},
    commit::EarlyItem,
    resource::ResourceKey,
    secret::{SecretData, SecretKey},
    view::FrameLine,
};
use periapt_sandbox::SealedArtifact;
use periapt_uniter::Timeline;
use serde::{Deserialize, Serialize};

use crate::clock::BootTime;

mod codec;
mod descriptors;

pub use codec::LinkError;
use codec::Message;
pub(crate) use codec::{Incoming, Outgoing, split};

/// The most bytes of one message of a runner. A commit is at most 1 MiB of effects; journal and early items have
/// bounds of their own. A runner that sends more is not one of ours any more.
pub(crate) const FROM_RUNNER_LIMIT: usize = 4 << 20;

/// The most bytes of one message of a keeper: a line of a watch is the largest that it passes on.
pub(crate) const FROM_KEEPER_LIMIT: usize = MAX_LINE_BYTES + (1 << 20);

/// The most calls of one runner that a keeper holds at a time; it reads no further before one was answered.
pub(crate) const CALLS_OUTSTANDING: usize = 64;

/// Numbers the calls of one runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CallId(pub(crate) u64);

/// What a keeper tells its runner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToRunner {
    /// The first message: all that the runner must know.
    Start(Box<Start>),
    /// A line of the watch.
    Frame(Box<FrameLine>),
    /// The answer to one call.
    Answer {
        /// Which.
        id: CallId,
        /// What became of it.
        outcome: CallOutcome,
    },
    /// Leaderships that were granted or renewed.
    Grants(Vec<Grant>),
    /// End now: hooks in flight are abandoned and run again later (U-13).
    Exit,
}

/// What a runner starts with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Start {
    /// The agent that it belongs to.
    pub(crate) agent: AgentName,
    /// The model that it runs.
    pub(crate) model: ModelUuid,
    /// Where the storage of its units lies; made when it is needed.
    pub(crate) storage: PathBuf,
    /// Host and port of the controller, as hooks are told.
    pub(crate) api_addresses: Vec<String>,
    /// How many hooks may run at the same time.
    pub(crate) hooks: usize,
    /// How much memory the budgets of these may add up to, in MiB.
    pub(crate) hook_memory_mib: u32,
    /// The time that its units' timers run by: the agent's, so that it outlives the runner.
    pub(crate) timeline: Timeline,
    /// After how long without anything due it offers to exit, in milliseconds.
    pub(crate) idle_after_ms: u64,
    /// Hooks that were in flight when the runner before it died.
    pub(crate) suspects: Vec<Suspect>,
    /// Leaderships that the keeper holds for its units.
    pub(crate) grants: Vec<Grant>,
}

/// A hook that was in flight when its runner died.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Suspect {
    /// Whose.
    pub(crate) unit: UnitName,
    /// Which run.
    pub(crate) operation: OperationId,
    /// How many runners died with it in flight.
    pub(crate) deaths: u32,
}

/// A leadership, and until when its holder may rely on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Grant {
    /// Who leads its application.
    pub(crate) unit: UnitName,
    /// The fencing token.
    pub(crate) term: LeaderTerm,
    /// When it lapses: counted from when the request was *sent*.
    pub(crate) until: BootTime,
}

/// What a runner tells its keeper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToKeeper {
    /// A call; exactly one answer follows.
    Call {
        /// Chosen by the runner.
        id: CallId,
        /// What is asked.
        call: Call,
    },
    /// A hook is about to run.
    HookStarted {
        /// Whose.
        unit: UnitName,
        /// Which run.
        operation: OperationId,
    },
    /// It ended, however, and was committed or dropped; or it is not due any more.
    HookEnded {
        /// Whose.
        unit: UnitName,
        /// Which run.
        operation: OperationId,
    },
    /// What left a running hook, as it came: sent on by the keeper if the runner dies before it did so itself.
    Noted {
        /// Whose.
        unit: UnitName,
        /// In order.
        items: Vec<EarlyItem>,
    },
    /// Nothing is due.
    Idle {
        /// What the mirror was complete to.
        position: WatchPosition,
        /// When something will be due although nothing changed.
        wake_at: Option<Timestamp>,
    },
    /// The runner has unmapped a charm's code. It asks for the charm again before its next hook.
    Released(Digest),
    /// A frame did not fit: send everything.
    Resync,
    /// The runner lives; sent every few seconds.
    Alive,
    /// It ends on purpose: no hook is suspect.
    Ending {
        /// Why.
        reason: String,
    },
}

/// What a runner may ask.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    /// Of the controller.
    Command(Box<RunnerCommand>),
    /// Content that a unit may read, of the controller.
    Secret {
        /// Whose hook asks.
        unit: UnitName,
        /// Which revision of which secret.
        key: SecretKey,
    },
    /// The content of a resource that a unit may read.
    Resource {
        /// Whose hook asks.
        unit: UnitName,
        /// Which content of which resource.
        key: ResourceKey,
    },
    /// That a charm's files and its compiled component are in place.
    Charm(Digest),
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CallOutcome {
    /// The controller did it.
    Answered {
        /// What it said.
        answer: RunnerAnswer,
        /// Where it can be read.
        revision: Revision,
        /// When the keeper sent the request.
        sent_at: BootTime,
    },
    /// The charm is in place.
    Charm(ReadyCharm),
    /// The content that was asked for.
    Secret(SecretData),
    /// The content of a resource.
    Resource(HeldFile),
    /// Nothing of it happened, and the same again would do no better.
    Refused(Refusal),
    /// It is not known whether it happened: ask the same again.
    Away {
        /// Why.
        message: String,
    },
}

/// A charm that can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ReadyCharm {
    /// The archive's digest.
    pub(crate) digest: Digest,
    /// The component's.
    pub(crate) component: Digest,
    /// The charm's own files, read-only.
    pub(crate) directory: PathBuf,
    /// The compiled component, which the keeper has checked. It goes beside the message, as a descriptor: there is
    /// none only in what somebody else than a keeper sends.
    #[serde(skip)]
    pub(crate) artefact: Option<SealedArtifact>,
    /// The modules that the component shares with others.
    pub(crate) modules: Vec<ReadyModule>,
}

/// A module in native code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct ReadyModule {
    /// The module's digest, by which components import it.
    pub(crate) digest: Digest,
    /// As of a component.
    #[serde(skip)]
    pub(crate) artefact: Option<SealedArtifact>,
}

/// A file that is held open, to be read. It goes beside the message, as a descriptor: there is none only in what somebody
/// else than a keeper sends.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct HeldFile {
    #[serde(skip)]
    pub(crate) file: Option<Arc<File>>,
}

/// The same descriptor, not the same content.
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
    const TAKES_DESCRIPTORS: bool = true;

    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        match self {
            Self::Answer { outcome: CallOutcome::Charm(ready), .. } => {
                let modules = ready.modules.iter().filter_map(|module| module.artefact.as_ref());
                ready.artefact.iter().chain(modules).map(AsFd::as_fd).collect()
            }
            Self::Answer { outcome: CallOutcome::Resource(held), .. } => {
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
            Self::Answer { outcome: CallOutcome::Resource(held), .. } => {
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
