//! What can be asked of the model, and what it answers.

pub(crate) mod access;

use periapt_host_api::{
    AgentName, ApplicationName, Digest, ModelUuid, Timestamp,
    agent::{Register, RunnerAnswer, RunnerCommand},
    charm::CharmMeta,
    command::{Answer, Command, ControllerCommand},
};
use uuid::Uuid;

use crate::entity::WorkId;

/// What a command may know of the world: all of it drawn by the caller's shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Environment {
    /// The time, for people and for due dates.
    pub now: Timestamp,
    /// The controller's monotonic clock, by which leases lapse, in milliseconds.
    pub lease_now_ms: u64,
    /// Fresh randomness, for ids.
    pub seed: [u8; 16],
}

impl Environment {
    /// A random id (version 4) from the seed.
    pub(crate) fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.seed).into_uuid()
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// A command about no existing model, or about a whole one.
    Controller(ControllerCommand),
    /// A command of an operator to a model.
    Model(ModelUuid, Command),
    /// A charm was uploaded and checked; its blob is in place.
    UploadCharm(UploadedCharm),
    /// Content for resources was uploaded; its blob is in place.
    UploadResource(UploadedResource),
    /// An agent's keeper started.
    Register(AgentName, Register),
    /// A runner's call.
    Runner(ModelUuid, RunnerCommand),
    /// A step of the controller's own workers.
    Worker(WorkerCommand),
}

/// An uploaded charm.
#[derive(Debug, Clone, PartialEq)]
pub struct UploadedCharm {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest.
    pub component: Digest,
    /// What it declares.
    pub meta: CharmMeta,
    /// Bytes of the archive.
    pub size: u64,
}

/// Content that was uploaded for resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadedResource {
    /// Its digest.
    pub digest: Digest,
    /// In bytes.
    pub size: u64,
}

/// What the controller asks of itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorkerCommand {
    /// The controller's first start: gives it its name and id. Changes nothing afterwards.
    Initialize {
        /// Its name.
        name: String,
    },
    /// An agent's stream was opened, or a call of it came.
    AgentConnected(AgentName),
    /// An agent's last stream ended.
    AgentDisconnected(AgentName),
    /// Forgets a charm that no model uses. Changes nothing if one does.
    ForgetCharm(Digest),
    /// Forgets content that no resource has. Changes nothing if one does.
    ForgetResource(Digest),
    /// Finds machines for units that have none.
    AssignUnits(ModelUuid),
    /// Does the next step of a work item.
    RunWork(ModelUuid, WorkId),
    /// Forgets ended tasks that are kept no longer.
    PruneTasks(ModelUuid),
    /// Copies what other models did in relations with this one.
    CopyFromOthers(ModelUuid),
    /// Does the next step of a model's destruction.
    CleanUpModel(ModelUuid),
    /// Marks rotations and expiries of secrets whose time has come.
    MarkSecretsDue(ModelUuid),
    /// Takes leadership from a unit whose lease lapsed, so that the others claim it.
    ExpireLease(ModelUuid, ApplicationName),
}

impl WorkerCommand {
    /// The model that it is about.
    pub fn model(&self) -> Option<ModelUuid> {
        match self {
            Self::AssignUnits(model)
            | Self::RunWork(model, _)
            | Self::PruneTasks(model)
            | Self::CopyFromOthers(model)
            | Self::CleanUpModel(model)
            | Self::MarkSecretsDue(model)
            | Self::ExpireLease(model, _) => Some(*model),
            Self::Initialize { .. }
            | Self::AgentConnected(_)
            | Self::AgentDisconnected(_)
            | Self::ForgetCharm(_)
            | Self::ForgetResource(_) => None,
        }
    }
}

/// What a request did.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// A command's answer.
    Answer(Answer),
    /// The answer to a runner.
    Runner(RunnerAnswer),
    /// There is nothing to tell.
    Done,
}
