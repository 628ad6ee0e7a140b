//! A hook's effects on the model, and the commit that applies all of them or none, together with the unit's progress
//! (`docs/design/commit.md`, `docs/hook-model.md` section 3).

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

/// The effects of a hook, deferred until the handler returns ok.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct HookEffects {
    /// Writes to the unit's and its application's bags, per relation.
    pub bags: BTreeMap<RelationId, BagChanges>,
    /// Ports to open and to close, with opposite requests cancelled out.
    pub ports: PortChanges,
    /// Writes to the unit's stored state. `None` deletes the key.
    pub state: BTreeMap<String, Option<String>>,
    /// Writes to the leader settings. An empty value deletes the key.
    pub leader_settings: Settings,
    /// Numbers of storage instances to add to the unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub add_storage: BTreeMap<StorageName, u32>,
    /// New custom events, and custom events to cancel.
    #[serde(skip_serializing_if = "EventChanges::is_empty")]
    pub events: EventChanges,
    /// Changes of secrets.
    #[serde(skip_serializing_if = "SecretChanges::is_empty")]
    pub secrets: SecretChanges,
}

impl HookEffects {
    /// Returns true if the hook has no effects.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Writes to this unit's bags in one relation; an empty value deletes its key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct BagChanges {
    /// Writes to the unit's own bag.
    pub unit: Settings,
    /// Writes to the application's bag; by the leader only.
    pub application: Settings,
}

/// Ports to open and to close. No range is in both sets for the same endpoint.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct PortChanges {
    /// Ranges to open.
    pub open: BTreeSet<PortRequest>,
    /// Ranges to close.
    pub close: BTreeSet<PortRequest>,
}

/// A port range for one endpoint or for all of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct PortRequest {
    /// The port range.
    pub range: PortRange,
    /// The endpoint. `None` means all endpoints.
    pub endpoint: Option<EndpointName>,
}

/// Changes that the uniter, and not the charm, makes in a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Transitions {
    /// Relations whose scope the unit enters.
    pub enter_scope: BTreeSet<RelationId>,
    /// Relations whose scope the unit leaves.
    pub leave_scope: BTreeSet<RelationId>,
    /// Storage that the unit detaches: its detaching hook was committed, or its attached hook never was (U-42).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub detach_storage: BTreeSet<StorageId>,
    /// True if the commit writes the unit's present addresses into its bags: after config-changed.
    pub refresh_addresses: bool,
    /// True if the unit has used up the operator's `resolved` (U-27).
    pub clear_resolved: bool,
    /// Secrets that had a rotate hook, with the revision that was the latest then (S-9).
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rotated: BTreeMap<SecretId, SecretRevision>,
    /// Revisions that had an expired hook (S-9).
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub expired: BTreeSet<SecretKey>,
    /// The custom event that the charm has handled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told_event: Option<EventId>,
    /// The charm that the unit runs from now on.
    pub charm: Option<CharmRef>,
    /// The task whose action begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub begin_task: Option<TaskId>,
    /// The end of the action that was begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_task: Option<TaskEnd>,
    /// True if the unit has nothing left to do and becomes dead (U-39).
    pub terminate: bool,
}

/// One commit of one unit. The controller applies all of it or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitCommit {
    /// The unit.
    pub unit: UnitName,
    /// The `seq` of the record that this commit started from; the controller's must be the same.
    pub seq: u64,
    /// The incarnation of the runner that commits.
    pub incarnation: Incarnation,
    /// The unit's record after the commit; its `seq` is one more.
    pub record: UnitRecord,
    /// The hook's effects; empty if the hook failed.
    #[serde(default)]
    pub effects: HookEffects,
    /// The uniter's changes.
    #[serde(default)]
    pub transitions: Transitions,
    /// The term of leadership that leader-only effects depend on. The writer checks it in the commit's transaction
    /// (D-4).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leader_term: Option<LeaderTerm>,
    /// Early effects of the hook that the runner has not sent yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early: Vec<EarlyItem>,
    /// The journal record of the run. `None` if no hook ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalRecord>,
    /// The usage of hooks that had nothing to commit (an update-status without effects).
    #[serde(default, skip_serializing_if = "Usage::is_empty")]
    pub uncommitted_usage: Usage,
}

/// An effect that stays even if the hook fails (`docs/design/commit.md`). The controller drops items whose
/// number it has seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct EarlyItem {
    /// The number of the item; rises by one for each item of the unit.
    pub number: u64,
    /// The time of the host call.
    pub at: Timestamp,
    /// The effect.
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
        /// The message for people.
        message: String,
    },
    /// The application's status. The leadership lease at the time of the call permits it.
    ApplicationStatus {
        /// The status.
        status: WorkloadStatus,
        /// The message for people.
        message: String,
        /// The term of leadership that the call depends on. The controller drops the item if that term is over.
        term: LeaderTerm,
    },
    /// The workload's version.
    ApplicationVersion {
        /// The version as the charm writes it.
        version: String,
    },
    /// The status of the unit's agent.
    AgentStatus {
        /// The status.
        status: AgentStatus,
        /// The message for people.
        message: String,
        /// The failed hook, and its relation, storage or secret.
        #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
        data: serde_json::Map<String, serde_json::Value>,
    },
    /// A message of the running action, for the operator who waits for its end.
    TaskMessage {
        /// The task.
        task: TaskId,
        /// The text of the message.
        message: String,
    },
    /// A line for the unit's log.
    Log {
        /// The severity.
        level: LogLevel,
        /// The logging module: `unit.APP/N.HOOK` or `unit.APP/N.juju-log`.
        module: String,
        /// The text of the line.
        message: String,
    },
}
