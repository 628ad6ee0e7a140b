//! The unit's record: all that its uniter must remember, kept by the controller and written in the same commit
//! as a hook's effects (`hook-model.md` 1.2, section 0).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, Digest, EndpointName, OperationId, RelationId, StorageId, TaskId, Timestamp, UnitName,
    event::Event,
    secret::{SecretId, SecretRevision},
};

/// A charm as one application wants it. Both parts are compared: attaching a resource bumps the version of the
/// same charm (`hook-model.md` 1.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmRef {
    /// The archive's digest.
    pub digest: Digest,
    /// Bumped by a new charm and by a new resource revision.
    pub modified_version: u64,
}

/// What a unit has done, and what it is about to do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitRecord {
    /// How many commits the unit has made. A commit names the `seq` that it started from and leaves one more.
    pub seq: u64,
    /// What is in progress.
    pub operation: Operation,
    /// The action that was begun, whatever hook waits in `operation`. Found when the unit is resolved, it is one
    /// whose agent died under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<TaskId>,
    /// The install hook was committed.
    pub installed: bool,
    /// The start hook was committed, and no stop after it.
    pub started: bool,
    /// The stop hook was committed.
    pub stopped: bool,
    /// The remove hook was committed.
    pub removed: bool,
    /// Leader-elected was queued, and the unit has not resigned since.
    pub leader: bool,
    /// The charm has set its unit's status at least once.
    pub status_set: bool,
    /// The charm that the unit runs.
    pub charm: Option<CharmRef>,
    /// What the last committed config-changed saw.
    pub seen: SeenHashes,
    /// The version of the settings that the last committed config-changed saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_version: Option<u64>,
    /// The version of the leader settings last seen; none: a unit that does not lead is told of them once,
    /// whatever their version (`hook-model.md` 1.8; also after it lost leadership, 1.5).
    pub leader_settings_version: Option<u64>,
    /// Relations whose scope this unit is in, or whose broken hook is still due.
    pub relations: BTreeMap<RelationId, RelationRecord>,
    /// Storage whose attached hook was committed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub storages: BTreeSet<StorageId>,
    /// The hook that was begun last and is not committed yet; only of units that have storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
    /// What the unit was told of secrets, by those that it sees.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<SecretId, SecretRecord>,
    /// The boot of the host in which the unit last ran `start`.
    pub boot_id: Option<String>,
    /// When update-status is due next; none until the unit has started.
    pub update_status_due: Option<Timestamp>,
}

/// A hook that was begun. What a hook writes to storage is not undone when it fails or is cut short, so before each
/// run of a unit with storage its attempt is recorded (`design.md` section 6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Begun {
    /// Which.
    pub event: Event,
    /// How often it was begun, this time included.
    pub attempt: u32,
    /// The id of the run: the same when one that was cut short is made again.
    pub operation: OperationId,
}

/// Hashes that a committed config-changed stores, to know when the next is due (U-3).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SeenHashes {
    /// Over the settings and the charm.
    pub config: String,
    /// Over application-level keys such as `trust`.
    pub trust: String,
    /// Over the machine's addresses.
    pub addresses: String,
}

/// The operation in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Nothing: the resolver decides afresh. A new unit starts here too: without a charm it deploys first.
    #[default]
    Continue,
    /// A hook is due, or failed.
    Hook {
        /// Which.
        event: Event,
        /// How far it is.
        step: HookStep,
    },
    /// A charm could not be brought into place (U-33), and waits for `resolved` or another charm.
    DeployFailed {
        /// The charm that could not be used.
        charm: CharmRef,
        /// What went wrong.
        failure: HookFailure,
        /// A failed hook that the upgrade interrupted (U-35).
        interrupted: Option<Box<InterruptedHook>>,
    },
}

/// How far a hook is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookStep {
    /// To be run next, whatever else is due.
    Queued,
    /// It ran and failed; it waits for a retry or for `resolved`.
    Failed(HookFailure),
}

/// A failed hook that a forced upgrade put aside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct InterruptedHook {
    /// Which.
    pub event: Event,
    /// Its failure.
    pub failure: HookFailure,
}

/// Why and when a hook failed, and when it is tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HookFailure {
    /// What an author or operator reads.
    pub message: String,
    /// Failures in a row since the back-off was last reset.
    pub attempts: u32,
    /// When it failed.
    pub failed_at: Timestamp,
    /// How long to wait before the next try, jitter included, in milliseconds; counts only while
    /// automatic retry is on.
    pub retry_after_ms: u64,
}

/// What a unit was told of one relation (`hook-model.md` 1.2, 2.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationRecord {
    /// The endpoint of this unit's side.
    pub endpoint: EndpointName,
    /// The application at the other end; in a peer relation the unit's own.
    pub remote_application: ApplicationName,
    /// Whether relation-created has been committed.
    pub created: bool,
    /// Members whose joined hook was committed, with the version of their bag last seen.
    pub members: BTreeMap<UnitName, u64>,
    /// Versions of application bags last seen; 0: never written.
    pub applications: BTreeMap<ApplicationName, u64>,
    /// The member whose changed hook must be the next of this relation.
    pub changed_pending: Option<UnitName>,
    /// How many members had gone again by the last hook of the relation, whether the unit was told of them or not: those
    /// that came and went unseen are told by the difference.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a unit was told of one secret (`hook-model.md` 1.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretRecord {
    /// The latest revision that a committed secret-changed was about; none: it was told of none.
    pub changed: Option<SecretRevision>,
    /// Revisions that a committed secret-remove was about, as long as they are there.
    pub obsolete: BTreeSet<SecretRevision>,
}
