//! What agents ask of the controller: registration, attachment, leases, commits.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, Incarnation, LeaderTerm, ModelUuid, Revision, StorageId, TagName, UnitName,
    commit::{EarlyItem, UnitCommit},
    network::HostInterface,
};

/// An agent says who and where it is, at each start of its keeper.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Register {
    /// Addresses of its host, the preferred first.
    pub addresses: Vec<String>,
    /// Interfaces of its host with addresses that others may reach; none: not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interfaces: Vec<HostInterface>,
    /// The host's boot id: `start` follows a new one (`hook-model.md` section 0).
    pub boot_id: String,
    /// The host's name.
    pub hostname: String,
    /// Where the host stands; may be empty.
    #[serde(default)]
    pub availability_zone: String,
    /// How many cores the host has that the agent may use; 0: not known.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cores: u32,
    /// Words by which units are placed on it (`constraints`).
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub tags: BTreeSet<TagName>,
    /// Periapt's version.
    pub version: String,
    /// The engine and its version.
    pub engine: String,
    /// What all storage on its disk may be large together, in mebibytes; none: not known, and as large as models make it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_limit: Option<u64>,
}

/// What a keeper must know: which models have units on its agent, and which charms these need. Sent as NDJSON,
/// whole whenever it differs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct AgentAssignments {
    /// Complete up to here.
    pub revision: Revision,
    /// Models with units on this agent.
    pub models: BTreeMap<ModelUuid, ModelAssignment>,
}

/// One model's part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct ModelAssignment {
    /// Charm archives that units of this agent run or are to run.
    pub charms: Vec<Digest>,
    /// How many units.
    pub units: u32,
}

/// A call of a runner for its model, as its keeper stamps and forwards it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerCommand {
    /// The runner starts: revokes the incarnation before it.
    Attach,
    /// One hook's commit.
    Commit(Box<UnitCommit>),
    /// Early effects that cannot wait for the commit.
    Early {
        /// Whose.
        unit: UnitName,
        /// The runner's attachment.
        incarnation: Incarnation,
        /// In order.
        items: Vec<EarlyItem>,
    },
    /// Claims or renews leadership.
    Claim(LeaseClaim),
    /// What became of storage on the agent's disk.
    Storage {
        /// Which.
        storage: StorageId,
        /// The runner's attachment.
        incarnation: Incarnation,
        /// How it is.
        report: StorageReport,
    },
}

/// What an agent says of storage on its disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StorageReport {
    /// It is there, and can be used.
    Provisioned,
    /// It could not be made, or not be deleted; the agent tries again.
    Failed {
        /// For people.
        message: String,
    },
    /// Its files are deleted.
    Deleted,
}

/// A claim on an application's leadership (`hook-model.md` 7.4).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct LeaseClaim {
    /// For whom.
    pub unit: UnitName,
    /// Of which application; must be the unit's own (D-2).
    pub application: ApplicationName,
    /// For how long, in seconds; 5 to 300.
    pub seconds: u32,
}

/// The answer to a [`RunnerCommand`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunnerAnswer {
    /// The runner is attached.
    Attached {
        /// To be named in each commit.
        incarnation: Incarnation,
    },
    /// It happened, and can be read at the answer's revision.
    Done,
    /// The claim was granted or renewed; it lasts from when the request was *sent*.
    Granted {
        /// The fencing token.
        term: LeaderTerm,
        /// Seconds.
        seconds: u32,
    },
    /// Somebody else holds it.
    Held {
        /// Who.
        holder: UnitName,
    },
}

/// Identity headers that the keeper stamps on what it forwards; TLS client certificates take their place later.
pub mod header {
    /// The calling agent's name.
    pub const AGENT: &str = "periapt-agent";
    /// The calling user's name.
    pub const USER: &str = "periapt-user";
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
