//! The requests of agents to the controller (registration, attachment, leases, commits) and their answers.

mod join;
mod peer;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use join::{
    Admission, CertificateRequest, IssuedCertificate, JoinText, JoinTextError, MAX_JOIN_VALIDITY,
    MAX_POOL_USES, PoolAdmission,
};
pub use peer::{AgentPlace, MAX_ORDER_BYTES, PeerOrder, PeerTarget};

use crate::{
    ApplicationName, ContainerName, Digest, Incarnation, LeaderTerm, ModelUuid, RequestId, Revision,
    StorageId, TagName, UnitName,
    commit::{EarlyItem, UnitCommit},
    container::WorkloadsReport,
    exec_session::ExecSessionOrder,
    network::HostInterface,
    program::{ProgramTarget, RunningProgram},
    workload_log::WorkloadLogOrder,
};

/// The most bytes of [`Register::firewall_problem`]. `status` shows it in a row of a table.
pub const MAX_FIREWALL_PROBLEM: usize = 200;

/// The most bytes of [`Register::container_problem`], which `status` shows beside it.
pub const MAX_CONTAINER_PROBLEM: usize = 512;

/// The registration of an agent, which its keeper sends at each start, and again when the agent has not taken a program
/// and when the problem of its firewall begins, changes or ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Register {
    /// The addresses of the agent's host, the preferred first.
    pub addresses: Vec<String>,
    /// The host's network interfaces with addresses that other hosts can reach; empty if unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostInterface>,
    /// The host's boot id: `start` follows a new one (`docs/hook-model.md` section 0).
    pub boot_id: String,
    /// The host's name.
    pub hostname: String,
    /// The availability zone of the host; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// The number of cores of the host that the agent may use; 0 if unknown.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cores: u32,
    /// The tags that `constraints` match to place units on the agent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<TagName>,
    /// Periapt's version.
    pub version: String,
    /// The engine's name and version.
    pub engine: String,
    /// The limit of all storage on the agent's disk together, in mebibytes; none means unknown, and no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_limit: Option<u64>,
    /// The program that the agent runs; none from agents that do not replace themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<RunningProgram>,
    /// The port of its addresses on which the agent takes connections of other agents for its units; none from agents that
    /// take none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer_port: Option<u16>,
    /// The reason why the host's firewall lacks the agent's newest rules, and the remedy, as one line for the operators of
    /// all models on the host; none if it has them, and from agents that write none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firewall_problem: Option<String>,
    /// The parts of the confinement of containers that the host lacks, or the reason why no container runs on it, and the
    /// remedy, as one line; none if it lacks nothing, and from agents that run no containers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_problem: Option<String>,
}

/// The assignments of one agent: the models with units on it and the charms that these units need. The controller
/// sends them as NDJSON, in full at each change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentAssignments {
    /// The revision up to which the assignments are complete.
    pub revision: Revision,
    /// The models with units on this agent.
    pub models: BTreeMap<ModelUuid, ModelAssignment>,
    /// The URLs of all controllers of the store, if there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// The program that the agent is to run; none: it keeps its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramTarget>,
    /// The seconds within which all agents fetch that program. Each waits for a part of them, so that few fetch it at a
    /// time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub program_within: u32,
    /// The controller to which all models of the agent have moved: the agent goes on there, with the key that it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<ControllerPlace>,
    /// The orders of operators who wait for the output of workloads. One that is gone has ended.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logs: BTreeMap<RequestId, WorkloadLogOrder>,
    /// The commands in containers that operators speak to. One that is gone has ended, and its command is killed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sessions: BTreeMap<RequestId, ExecSessionOrder>,
}

/// A controller, as its clients and agents reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ControllerPlace {
    /// The controller's UUID.
    pub controller: Uuid,
    /// The URLs of its controllers.
    pub addresses: Vec<String>,
    /// The certificate of its authority, as PEM text.
    pub authority: String,
}

/// The assignments of one model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelAssignment {
    /// The digests of the charm archives that units of this agent run or are to run.
    pub charms: Vec<Digest>,
    /// The number of the model's units on this agent.
    pub units: u32,
}

/// A call of a runner for its model. The agent's keeper adds the identity and forwards it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerCommand {
    /// Attaches the runner and revokes the previous incarnation.
    Attach,
    /// Commits one hook.
    Commit(Box<UnitCommit>),
    /// Applies early effects, which cannot wait for the commit.
    Early {
        /// The unit that runs the hook.
        unit: UnitName,
        /// The incarnation of the runner's attachment.
        incarnation: Incarnation,
        /// The early effects, in order.
        items: Vec<EarlyItem>,
    },
    /// Claims or renews leadership.
    Claim(LeaseClaim),
    /// Reports the state of storage on the agent's disk.
    Storage {
        /// The storage instance.
        storage: StorageId,
        /// The incarnation of the runner's attachment.
        incarnation: Incarnation,
        /// The state of the storage.
        report: StorageReport,
    },
    /// Tells, in the unit's log, why a container of it does not run.
    Container {
        /// The unit.
        unit: UnitName,
        /// The container.
        container: ContainerName,
        /// The incarnation of the runner's attachment.
        incarnation: Incarnation,
        /// The reason, for people.
        reason: String,
    },
    /// Reports the state of a unit's workloads, which replaces the one before.
    Workloads {
        /// The unit.
        unit: UnitName,
        /// The incarnation of the runner's attachment.
        incarnation: Incarnation,
        /// The state.
        report: Box<WorkloadsReport>,
    },
}

/// An agent's report of storage on its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageReport {
    /// The storage is there and ready for use.
    Provisioned,
    /// The agent failed to make or delete the storage, and tries again.
    Failed {
        /// The reason, for people.
        message: String,
    },
    /// The agent has deleted the storage's files.
    Deleted,
}

/// A claim on an application's leadership (`docs/hook-model.md` 7.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LeaseClaim {
    /// The unit that claims.
    pub unit: UnitName,
    /// The application to lead; must be the unit's own (D-2).
    pub application: ApplicationName,
    /// The seconds that the lease lasts; 5 to 60.
    pub seconds: u32,
}

/// The answer to a [`RunnerCommand`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerAnswer {
    /// The runner is attached.
    Attached {
        /// The incarnation that each commit must name.
        incarnation: Incarnation,
    },
    /// The controller carried the call out; its effects can be read at the answer's revision.
    Done,
    /// The controller granted or renewed the lease, which lasts from the moment that the agent *sent* the request.
    Granted {
        /// The fencing token.
        term: LeaderTerm,
        /// The seconds that the lease lasts.
        seconds: u32,
    },
    /// Another unit holds the lease.
    Held {
        /// The unit that leads.
        holder: UnitName,
    },
}

/// The headers of this API: those by which callers name themselves where the controller believes them, the id of a
/// request, and what its caller has seen.
pub mod header {
    /// The calling agent's name.
    pub const AGENT: &str = "periapt-agent";
    /// The calling user's name.
    pub const USER: &str = "periapt-user";
    /// The calling controller's name among several, in one process with its tests.
    pub const CONTROLLER: &str = "periapt-controller";
    /// The id of a user's request: a UUID that the client draws, and keeps when it sends the request again.
    pub const REQUEST_ID: &str = "periapt-request-id";
    /// The newest state that the caller has seen, in a request; a state that the answer is not older than, in an answer of
    /// one of several controllers. Both are a [`WatchPosition`](crate::api::WatchPosition) as text.
    pub const SEEN: &str = "periapt-seen";
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
