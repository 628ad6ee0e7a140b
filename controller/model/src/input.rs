//! The requests to the model, and their results.

use periapt_host_api::{
    AgentName, ApplicationName, Digest, Level, ModelUuid, RequestId, Timestamp, UserName,
    agent::{Register, RunnerAnswer, RunnerCommand},
    audit::AuditedRequest,
    charm::CharmMeta,
    command::{Answer, Command, ControllerCommand},
    resource::{ArchiveParts, CheckedImage},
    secret::Sealed,
    user::ExternalIdentity,
};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::entity::{MetaReader, PasswordHash, Registration, SessionKind, WorkId};

/// The inputs from outside that a command may use. The caller draws all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Environment {
    /// The wall-clock time, for people and for due dates.
    pub now: Timestamp,
    /// The controller's monotonic clock in milliseconds. Leases expire by this clock.
    pub lease_now_ms: u64,
    /// Random bytes, for new ids.
    pub seed: [u8; 16],
}

impl Environment {
    /// Returns a random id (version 4) made from the seed.
    pub(crate) fn uuid(&self) -> Uuid {
        uuid::Builder::from_random_bytes(self.seed).into_uuid()
    }
}

/// One request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Input {
    /// A command about the controller, about a model to be made, or about a whole model.
    Controller(ControllerCommand),
    /// A command of an operator to a model.
    Model(ModelUuid, Command),
    /// A command about a user's identity. The API makes tokens and hashes; none of it holds a secret.
    Identity(IdentityCommand),
    /// The upload of a charm, after its check; its blob is already stored.
    UploadCharm(UploadedCharm),
    /// The upload of content for resources; its blob is already stored.
    UploadResource(UploadedResource),
    /// A backup that was made and is about to be sent, for the audit log.
    Backup {
        /// True if it has the controller's keys.
        keys: bool,
    },
    /// The registration of an agent, sent when its keeper starts.
    Register(AgentName, Register),
    /// The request of an agent to join with a token.
    Join {
        /// The agent's name.
        agent: AgentName,
        /// The digest of the agent's public key, which its request has proved.
        key: Digest,
        /// The digest of the join token.
        token: Digest,
    },
    /// A call of a runner.
    Runner(ModelUuid, RunnerCommand),
    /// A command of the controller's own workers.
    Worker(WorkerCommand),
    /// A request that did not reach the writer as a command, for the audit log: refused ones, and the beginning and the end
    /// of a session. The stored name is that of the first of them.
    #[serde(rename = "refused")]
    Audit(AuditedRequest),
}

/// One command of a user's request with an id, by which the command is known when the request is sent again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RequestedCommand {
    /// The request.
    pub request: RequestId,
    /// The place of the command in the request, from 0.
    pub index: u32,
    /// The digest of the command as the client sent it, with the controller's key: the command may hold secrets.
    pub digest: Digest,
    /// The response of the request, sealed, if it holds what is not in the command's answer: a token.
    pub response: Option<Sealed>,
}

/// A command about a user's identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdentityCommand {
    /// Makes a user who may register.
    AddUser {
        /// The user.
        name: UserName,
        /// The name for people; empty means the user's name.
        display_name: String,
        /// The right to register.
        registration: Registration,
    },
    /// Takes a user's password away, and lets the user register again.
    ResetPassword {
        /// The user.
        user: UserName,
        /// The right to register.
        registration: Registration,
    },
    /// Sets a user's password.
    SetPassword {
        /// The user.
        user: UserName,
        /// The hash of the new password.
        password: PasswordHash,
        /// The session of the request, which stays open.
        session: Option<Digest>,
    },
    /// Sets the password of the user who has a registration token, and opens a session.
    Register {
        /// The digest of the registration token.
        registration: Digest,
        /// The hash of the password.
        password: PasswordHash,
        /// The session.
        session: NewSession,
    },
    /// Opens a session of a user whose password the API has verified.
    LogIn {
        /// The user.
        user: UserName,
        /// The hash that the password was verified against.
        verified: PasswordHash,
        /// The session.
        session: NewSession,
    },
    /// Opens a session of an external user whose login the API has verified at the issuer.
    LogInAtIssuer {
        /// The verified login.
        login: IssuerLogin,
        /// The session.
        session: NewSession,
    },
    /// Opens a session or makes an API token for the caller.
    OpenSession {
        /// The session.
        session: NewSession,
    },
}

/// A login that an issuer has proved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct IssuerLogin {
    /// The user, as the issuer's claims name it.
    pub user: UserName,
    /// The account.
    pub identity: ExternalIdentity,
    /// The name for people; none if the issuer tells none.
    pub display_name: Option<String>,
}

/// A session or API token to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NewSession {
    /// The digest of the token.
    pub token: Digest,
    /// The kind.
    pub kind: SessionKind,
    /// The time from which it is refused.
    pub expires_at: Timestamp,
    /// The caller's address.
    pub address: String,
}

/// An uploaded charm.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UploadedCharm {
    /// The archive's digest.
    pub digest: Digest,
    /// The component's digest.
    pub component: Digest,
    /// The metadata that the charm declares.
    pub meta: CharmMeta,
    /// The size of the archive, in bytes.
    pub size: u64,
    /// The reader of the metadata.
    #[serde(default, skip_serializing_if = "MetaReader::is_first")]
    pub reader: MetaReader,
}

/// Content that was uploaded for resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct UploadedResource {
    /// The content's digest.
    pub digest: Digest,
    /// The size in bytes.
    pub size: u64,
    /// The image in it, if it was checked to be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<CheckedImage>,
    /// The contents that it is stored as; none of a content that is a blob of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<ArchiveParts>,
}

/// A command that the controller sends to itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkerCommand {
    /// Gives the controller its name and id at its first start. Changes nothing afterwards.
    Initialize {
        /// The controller's name.
        name: String,
    },
    /// Raises the level of what is stored. Changes nothing if it is as high already.
    RaiseLevel(Level),
    /// Admits a controller to those of the log, before it is given their keys.
    AdmitController {
        /// The controller's name.
        name: String,
        /// The highest level that its program knows.
        level: Level,
    },
    /// Notes what a controller of the log reports. Changes nothing about one that was removed.
    NoteController {
        /// The controller's name.
        name: String,
        /// The URL by which clients reach it.
        url: String,
        /// The highest level that its program knows.
        level: Level,
    },
    /// Lets agents take the program that all controllers run, by the number of the target. Changes nothing if another
    /// one was set meanwhile.
    ReleaseProgram(u64),
    /// Deletes sessions and API tokens that have ended by time.
    ForgetSessions,
    /// Forgets answers to requests with an id that were kept long enough.
    ForgetAnswers,
    /// Marks an agent present: it opened a stream or made a call.
    AgentConnected(AgentName),
    /// Marks an agent absent: its last stream ended.
    AgentDisconnected(AgentName),
    /// Forgets a charm that no model uses. Changes nothing if a model uses it.
    ForgetCharm(Digest),
    /// Forgets content that no resource has. Changes nothing if a resource has it.
    ForgetResource(Digest),
    /// Assigns machines to units that have none.
    AssignUnits(ModelUuid),
    /// Moves machines of an agent that is gone to other agents.
    MoveMachines(ModelUuid, AgentName),
    /// Does the next step of a work item.
    RunWork(ModelUuid, WorkId),
    /// Forgets completed tasks whose retention is over.
    PruneTasks(ModelUuid),
    /// Copies the changes that other models made in relations with this model.
    CopyFromOthers(ModelUuid),
    /// Does the next step of a model's destruction.
    CleanUpModel(ModelUuid),
    /// Marks secrets whose rotation or expiry is due.
    MarkSecretsDue(ModelUuid),
    /// Takes leadership from a unit whose lease expired, so that other units can claim it.
    ExpireLease(ModelUuid, ApplicationName),
    /// Hands a model over to another controller, which has all of it.
    HandOverModel(ModelUuid, Uuid),
    /// Notes that the other controller has taken the model over.
    NoteMoved(ModelUuid, Uuid),
    /// Notes that a migration cannot go on. Changes nothing once the model is handed over.
    NoteMigrationFailed {
        /// The model.
        model: ModelUuid,
        /// The migration.
        id: Uuid,
        /// The reason, for people.
        reason: String,
    },
    /// Notes that the other controller of a failed migration was told.
    NoteAbortTold(ModelUuid, Uuid),
    /// Ends a migration whose time is over, or deletes the next part of what one has left.
    EndMigration(ModelUuid),
}

impl WorkerCommand {
    /// Returns the model that the command is about, if it is about one.
    pub fn model(&self) -> Option<ModelUuid> {
        match self {
            Self::AssignUnits(model)
            | Self::MoveMachines(model, _)
            | Self::RunWork(model, _)
            | Self::PruneTasks(model)
            | Self::CopyFromOthers(model)
            | Self::CleanUpModel(model)
            | Self::MarkSecretsDue(model)
            | Self::ExpireLease(model, _)
            | Self::HandOverModel(model, _)
            | Self::NoteMoved(model, _)
            | Self::NoteMigrationFailed { model, .. }
            | Self::NoteAbortTold(model, _)
            | Self::EndMigration(model) => Some(*model),
            Self::Initialize { .. }
            | Self::RaiseLevel(_)
            | Self::AdmitController { .. }
            | Self::NoteController { .. }
            | Self::ReleaseProgram(_)
            | Self::ForgetSessions
            | Self::ForgetAnswers
            | Self::AgentConnected(_)
            | Self::AgentDisconnected(_)
            | Self::ForgetCharm(_)
            | Self::ForgetResource(_) => None,
        }
    }
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// A command's answer.
    Answer(Answer),
    /// The answer to a runner.
    Runner(RunnerAnswer),
    /// The user of an opened session.
    Session(UserName),
    /// No answer.
    Done,
}
