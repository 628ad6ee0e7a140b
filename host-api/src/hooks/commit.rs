//! What a hook does to the model: its effects, wholly or not at all, in one commit together with the unit's
//! progress (`design.md` section 3, `hook-model.md` section 3).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    EndpointName, EventId, Incarnation, LeaderTerm, RelationId, StorageId, StorageName, TaskId, Timestamp,
    UnitName,
    action::TaskEnd,
    journal::JournalRecord,
    logs::LogLevel,
    pending::EventChanges,
    ports::PortRange,
    record::{CharmRef, UnitRecord},
    relation::Settings,
    secret::{SecretChanges, SecretId, SecretKey, SecretRevision},
    status::{AgentStatus, WorkloadStatus},
    usage::Usage,
};

/// What a hook asked for, deferred until it returned ok.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct HookEffects {
    /// Writes to own bags, per relation.
    pub bags: BTreeMap<RelationId, BagChanges>,
    /// Port requests, opposite ones cancelled out.
    pub ports: PortChanges,
    /// Writes to what the charm stores for the unit; none: the key goes.
    pub state: BTreeMap<String, Option<String>>,
    /// Writes to the leader settings; an empty value deletes.
    pub leader_settings: Settings,
    /// How many instances of storage the unit is to get in addition.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add_storage: BTreeMap<StorageName, u32>,
    /// Events to be told later, and those that are not to be told.
    #[serde(skip_serializing_if = "EventChanges::is_empty")]
    pub events: EventChanges,
    /// Changes of secrets.
    #[serde(skip_serializing_if = "SecretChanges::is_empty")]
    pub secrets: SecretChanges,
}

impl HookEffects {
    /// Whether nothing was asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Writes to this unit's bags in one relation; an empty value deletes its key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct BagChanges {
    /// To the unit's own bag.
    pub unit: Settings,
    /// To its application's bag; leader only.
    pub application: Settings,
}

/// Ports to open and to close. No range stands in both for the same endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct PortChanges {
    /// To open.
    pub open: BTreeSet<PortRequest>,
    /// To close.
    pub close: BTreeSet<PortRequest>,
}

/// One range for one endpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PortRequest {
    /// The range.
    pub range: PortRange,
    /// The endpoint; none: all of them.
    pub endpoint: Option<EndpointName>,
}

/// What the uniter, not the charm, changes with a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Transitions {
    /// Relations whose scope the unit enters.
    pub enter_scope: BTreeSet<RelationId>,
    /// Relations whose scope the unit leaves.
    pub leave_scope: BTreeSet<RelationId>,
    /// Storage that the unit lets go: its detaching hook was committed, or its attached hook never was (U-42).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub detach_storage: BTreeSet<StorageId>,
    /// Write the unit's present addresses into its bags: after config-changed.
    pub refresh_addresses: bool,
    /// The operator's `resolved` is used up (U-27).
    pub clear_resolved: bool,
    /// Secrets whose rotation the owner was told of, with the revision that was the latest then (S-9).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rotated: BTreeMap<SecretId, SecretRevision>,
    /// Revisions whose expiry the owner was told of (S-9).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub expired: BTreeSet<SecretKey>,
    /// The event that the charm asked for and was told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_event: Option<EventId>,
    /// The unit now runs this charm.
    pub charm: Option<CharmRef>,
    /// The task whose action is begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_task: Option<TaskId>,
    /// How the action that was begun ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_task: Option<TaskEnd>,
    /// All is wound up: the unit is dead (U-39).
    pub terminate: bool,
}

/// One commit of one unit: wholly or not at all.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitCommit {
    /// The unit.
    pub unit: UnitName,
    /// The `seq` of the record that this commit started from; the controller's must be the same.
    pub seq: u64,
    /// The runner's attachment.
    pub incarnation: Incarnation,
    /// The unit's record afterwards; its `seq` is one more.
    pub record: UnitRecord,
    /// What the charm asked for; empty when its hook failed.
    #[serde(default)]
    pub effects: HookEffects,
    /// What the uniter changes.
    #[serde(default)]
    pub transitions: Transitions,
    /// The leadership that leader-only effects rest on, checked in the commit's own transaction (D-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_term: Option<LeaderTerm>,
    /// What left the hook early and was not yet sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early: Vec<EarlyItem>,
    /// The run's record; none for commits in which no hook ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalRecord>,
    /// What hooks used that had nothing to commit (an update-status that changed nothing).
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub uncommitted_usage: Usage,
}

/// What takes effect whatever becomes of the hook (`design.md` section 3, item 7). The controller drops what
/// is numbered no higher than what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EarlyItem {
    /// Rises by one for each item of the unit.
    pub number: u64,
    /// When the call was made.
    pub at: Timestamp,
    /// What it is.
    pub effect: EarlyEffect,
}

/// The kinds of early effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EarlyEffect {
    /// The unit's workload status.
    UnitStatus {
        /// The status.
        status: WorkloadStatus,
        /// For people.
        message: String,
    },
    /// The application's status, decided by the lease when it was called.
    ApplicationStatus {
        /// The status.
        status: WorkloadStatus,
        /// For people.
        message: String,
        /// The leadership that it rests on; lost meanwhile: dropped.
        term: LeaderTerm,
    },
    /// The workload's version.
    ApplicationVersion {
        /// As the charm says it.
        version: String,
    },
    /// What the agent does.
    AgentStatus {
        /// The status.
        status: AgentStatus,
        /// For people.
        message: String,
        /// The failed hook and what it was about.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        data: serde_json::Map<String, serde_json::Value>,
    },
    /// A message of the running action for whoever waits for it.
    TaskMessage {
        /// The task.
        task: TaskId,
        /// The text.
        message: String,
    },
    /// A line for the unit's log.
    Log {
        /// How important.
        level: LogLevel,
        /// `unit.APP/N.HOOK` or `unit.APP/N.juju-log`.
        module: String,
        /// The text.
        message: String,
    },
}
