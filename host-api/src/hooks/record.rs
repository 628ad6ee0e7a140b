//! The unit's record: the state that its uniter must remember. The controller keeps it and writes it in the same
//! commit as a hook's effects (`docs/hook-model.md` 1.2, section 0).

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ApplicationName, ContainerName, Digest, EndpointName, OperationId, RelationId, StorageId, TaskId,
    Timestamp, UnitMap, UnitName,
    event::Event,
    secret::{SecretId, SecretRevision},
};

/// A version of a charm as one application uses it. Both parts are compared: attaching a resource bumps the version
/// of the same charm (`docs/hook-model.md` 1.10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct CharmRef {
    /// The archive's digest.
    pub digest: Digest,
    /// The version, bumped by a new charm and by a new resource revision.
    pub modified_version: u64,
}

/// The progress of a unit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct UnitRecord {
    /// The number of commits of the unit. A commit names the `seq` that it started from and leaves one more.
    pub seq: u64,
    /// The operation in progress.
    pub operation: Operation,
    /// The action that was begun, independent of the hook in `operation`. If the uniter finds an action here when it
    /// resolves the unit, the agent died while the action ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<TaskId>,
    /// Set once the install hook was committed.
    pub installed: bool,
    /// True if the start hook was committed, and no stop hook after it.
    pub started: bool,
    /// Set once the stop hook was committed.
    pub stopped: bool,
    /// Set once the remove hook was committed.
    pub removed: bool,
    /// True if leader-elected was queued and the unit has not resigned since.
    pub leader: bool,
    /// Set once the charm has set its unit's status.
    pub status_set: bool,
    /// The charm that the unit runs.
    pub charm: Option<CharmRef>,
    /// Hashes of the values that the last committed config-changed saw.
    pub seen: SeenHashes,
    /// The version of the settings that the last committed config-changed saw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings_version: Option<u64>,
    /// The version of the leader settings last seen. `None` in a unit that does not lead means that it gets one
    /// leader-settings-changed at any version (`docs/hook-model.md` 1.8; also after it lost leadership, 1.5).
    pub leader_settings_version: Option<u64>,
    /// Relations whose scope the unit is in, or whose broken hook is still due.
    pub relations: BTreeMap<RelationId, RelationRecord>,
    /// Storage whose attached hook was committed.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub storages: BTreeSet<StorageId>,
    /// The hook that was begun last and is not committed yet; only for units with storage or workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
    /// Progress on the secrets that the unit sees.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<SecretId, SecretRecord>,
    /// Progress on the workloads of the unit's containers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workloads: BTreeMap<ContainerName, WorkloadRecord>,
    /// The boot id of the host in which the unit last ran `start`.
    pub boot_id: Option<String>,
    /// The time of the next update-status. `None` until the unit has started.
    pub update_status_due: Option<Timestamp>,
}

/// A hook that was begun. What it writes to storage or changes in a workload stays when the hook fails or is cut short,
/// so the runner records each attempt of a unit with storage or workloads before it runs the hook
/// (`docs/design/storage.md`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Begun {
    /// The event.
    pub event: Event,
    /// The number of attempts, this one included.
    pub attempt: u32,
    /// The id of the run. A rerun after a cut has the same id.
    pub operation: OperationId,
    /// True if workloads of the unit listened when the hook began, until its end is on record. If the uniter finds it
    /// when it resolves the unit, the hook was cut short after it may have changed them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub beside_workloads: bool,
}

/// Hashes that a committed config-changed stores, to detect when the next is due (U-3).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct SeenHashes {
    /// The hash of the settings and the charm.
    pub config: String,
    /// The hash of application-level keys such as `trust`.
    pub trust: String,
    /// The hash of the machine's addresses.
    pub addresses: String,
}

/// The operation in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// No operation: the resolver decides afresh. A new unit starts here too: without a charm it deploys first.
    #[default]
    Continue,
    /// A hook that is due or failed.
    Hook {
        /// The event.
        event: Event,
        /// The progress of the hook.
        step: HookStep,
    },
    /// A charm that could not be deployed (U-33); the unit waits for `resolved` or another charm.
    DeployFailed {
        /// The charm that could not be deployed.
        charm: CharmRef,
        /// The failure.
        failure: HookFailure,
        /// The failed hook that the upgrade interrupted (U-35).
        interrupted: Option<Box<InterruptedHook>>,
    },
}

/// The progress of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HookStep {
    /// The hook is the next to run, before all other hooks that are due.
    Queued,
    /// The hook ran and failed; it waits for a retry or for `resolved`.
    Failed(HookFailure),
}

/// A failed hook that a forced upgrade interrupted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct InterruptedHook {
    /// The event.
    pub event: Event,
    /// The failure of the hook.
    pub failure: HookFailure,
}

/// The failure of a hook, and the time of its next try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HookFailure {
    /// The message for the author and the operator.
    pub message: String,
    /// The number of failures in a row since the back-off was last reset.
    pub attempts: u32,
    /// The time of the failure.
    pub failed_at: Timestamp,
    /// The wait before the next try, in milliseconds, jitter included. It counts only while automatic retry is on.
    pub retry_after_ms: u64,
    /// True if the hook was cut short beside workloads and its application's `workload-crash` was `error`. While that
    /// is so, the hook has no automatic retry.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut_short: bool,
}

/// A unit's progress on one relation (`docs/hook-model.md` 1.2, 2.5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct RelationRecord {
    /// The endpoint of this unit's side.
    pub endpoint: EndpointName,
    /// The application at the other end; in a peer relation the unit's own.
    pub remote_application: ApplicationName,
    /// True if relation-created has been committed.
    pub created: bool,
    /// Members whose joined hook was committed, with the version of their bag last seen.
    pub members: UnitMap<u64>,
    /// Versions of application bags last seen; 0 means never written.
    pub applications: BTreeMap<ApplicationName, u64>,
    /// The member whose changed hook must be the next of this relation.
    pub changed_pending: Option<UnitName>,
    /// The number of members that had left by the relation's last hook, seen by the unit or not. The difference shows
    /// members that came and left unseen.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gone: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A unit's progress on the workload of one container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct WorkloadRecord {
    /// The boot id of its Pebble in the last committed pebble-ready.
    pub boot_id: String,
    /// The number of the last notice of that start that the charm was told of.
    #[serde(skip_serializing_if = "is_zero")]
    pub told: u64,
}

/// A unit's progress on one secret (`docs/hook-model.md` 1.2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct SecretRecord {
    /// The latest revision with a committed secret-changed. `None` means that there was none.
    pub changed: Option<SecretRevision>,
    /// Revisions with a committed secret-remove, as long as they exist.
    pub obsolete: BTreeSet<SecretRevision>,
}
