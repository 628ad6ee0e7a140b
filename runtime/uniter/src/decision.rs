//! The resolver's decisions, and the outcomes that drivers report.

use std::collections::BTreeMap;

use periapt_host_api::{
    ContainerName, OperationId, Revision, TaskId, Timestamp, UnitName,
    action::{TaskOutcome, TaskResults},
    commit::{EarlyEffect, Transitions},
    event::Event,
    journal::{HookOutcome, JournalRecord},
    notice::WaitingNotices,
    record::{CharmRef, SecretRecord, SeenHashes, UnitRecord, WorkloadRecord},
    secret::{SecretId, SecretRevision},
    view::View,
};

/// The boot ids of the Pebbles that listen beside a unit, by their containers.
pub type WorkloadBoots = BTreeMap<ContainerName, String>;

/// The workloads that listen beside a unit, by their containers.
pub type UnitWorkloads = BTreeMap<ContainerName, ListeningWorkload>;

/// A container whose Pebble listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListeningWorkload {
    /// The id of this start.
    pub boot_id: String,
    /// Notices since this start that the charm may not have been told of.
    pub notices: WaitingNotices,
}

/// The next step of a unit.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Send the effects of [`before_hook`](crate::before_hook), run this hook, and then commit the result of
    /// [`hook_ended`](crate::hook_ended).
    RunHook(Box<HookRun>),
    /// Wait for the action's group, and resolve again. If the decision is the same, commit the action's start, run it,
    /// and then commit the result of [`action_ended`](crate::action_ended).
    RunAction(Box<ActionRun>),
    /// Fetch this charm, and then commit the result of [`deployed`](crate::deployed) or
    /// [`deploy_failed`](crate::deploy_failed).
    Deploy(Box<DeployRun>),
    /// Commit this step, without a run. If it is refused, drop it: the view with the cause is on its way, and the unit
    /// is resolved again when it arrives.
    Commit(Box<Progress>),
    /// No work is due, and the agent is idle. Resolve again at `wake_at` and at each change of the view.
    Idle {
        /// The time at which work is due even without a change; none if there is none.
        wake_at: Option<Timestamp>,
    },
    /// An operation waits for a retry, an operator or subordinates. The agent is not idle.
    Wait {
        /// The time at which work is due even without a change; none if there is none.
        wake_at: Option<Timestamp>,
    },
    /// The unit is dead, gone, or of another agent: stop managing it. No hook runs (U-17).
    Stop,
}

/// One run of one hook, with the data from its decision to its commit.
#[derive(Debug, Clone, PartialEq)]
pub struct HookRun {
    /// The unit.
    pub unit: UnitName,
    /// The event for the charm.
    pub event: Event,
    /// The number of this attempt, from 1, since the last reset of the back-off. It is exact over all attempts if the
    /// run is [durable](Self::must_begin).
    pub attempt: u32,
    /// The consecutive failures since the last reset of the back-off.
    pub(crate) failures: u32,
    pub(crate) operation: OperationId,
    pub(crate) durable: bool,
    pub(crate) beside_workloads: bool,
    /// The changes that this run merges or makes moot, for people.
    pub coalesced: Vec<String>,
    /// The charm that the unit runs.
    pub charm: CharmRef,
    /// The record at the start of the run.
    pub record: UnitRecord,
    /// The versions to mark as seen in the commit.
    pub seen: SeenVersions,
    /// The revision of the decision's view, which also answers the hook's reads.
    pub snapshot: Revision,
    /// The time of the decision.
    pub decided_at: Timestamp,
}

impl HookRun {
    /// Returns the id of this run. A repeat of a lost run has the same id.
    pub fn operation(&self) -> OperationId {
        self.operation
    }

    /// Returns true if the run may leave traces outside its commit, because the unit has storage or workloads. Then the
    /// result of [`begin`](crate::begin) is committed before the start.
    pub fn must_begin(&self) -> bool {
        self.durable
    }

    /// Returns true if the run may connect to the unit's workloads, because the record will show that it began: some
    /// listened at the decision, so the run [must begin](Self::must_begin), or it is an action's.
    pub fn may_reach_workloads(&self) -> bool {
        self.beside_workloads || self.event.task().is_some()
    }
}

/// One run of one action. Its start is committed before it runs, so that it never runs twice (1.6).
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRun {
    /// The task.
    pub task: TaskId,
    /// The parallel group of actions on its machine that must not overlap; none if it may run beside all.
    pub group: Option<String>,
    /// The commit before the run, which starts from the record's `seq`.
    pub begin: Progress,
    /// The run, with the record after that commit. Its view is the decision's; the action's reads use the view that
    /// shows its start.
    pub run: HookRun,
}

/// The end of an action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    /// The outcome.
    pub outcome: TaskOutcome,
    /// The message for operators; cut if it is very long.
    pub message: String,
    /// The results.
    pub results: TaskResults,
    /// True if the charm called status-set for its unit in this run.
    pub status_set: bool,
}

/// The versions in the view of a decision. A commit marks these as seen and not the newest ones, so that a change
/// during the hook makes another hook due (U-3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SeenVersions {
    /// The hashes of settings, trust and addresses.
    pub hashes: SeenHashes,
    /// The version of the leader settings.
    pub leader_settings_version: u64,
    /// The version of the settings.
    pub settings_version: u64,
    /// The boot id of the host; none if unknown.
    pub boot_id: Option<String>,
    /// The version of the bag that the event is about; 0 if there is none. For a batch, that of the application's bag.
    pub bag_version: u64,
    /// The versions of the bags of the members that joined or changed in a batch.
    pub member_versions: BTreeMap<UnitName, u64>,
    /// The number of former members of the event's relation, without those whose departure the unit has yet to be told.
    pub gone: u64,
    /// True if the event's relation is still in the model.
    pub relation_exists: bool,
    /// The latest revision of the event's secret; 0 if there is none.
    pub secret_latest: SecretRevision,
    /// The unit's knowledge of the secrets and revisions that still exist, for an event about a secret.
    pub secrets: BTreeMap<SecretId, SecretRecord>,
    /// The unit's knowledge of its workloads after an event about one of them.
    pub workloads: BTreeMap<ContainerName, WorkloadRecord>,
    /// The interval of update-status hooks, in seconds; 0 means off.
    pub update_status_interval: u32,
}

/// The deployment of a charm to a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployRun {
    /// The unit.
    pub unit: UnitName,
    /// The application's current charm.
    pub charm: CharmRef,
    /// The record at the start.
    pub record: UnitRecord,
}

impl DeployRun {
    /// Returns the id of this operation. A repeat of a lost deployment has the same id.
    pub fn operation(&self) -> OperationId {
        OperationId(self.record.seq)
    }
}

/// The kind of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeployKind {
    /// The unit has no charm yet.
    First,
    /// The unit has a charm already.
    Upgrade,
}

impl DeployKind {
    /// Returns the kind of the next deployment of a unit with this record.
    pub fn of(record: &UnitRecord) -> Self {
        if record.charm.is_some() { Self::Upgrade } else { Self::First }
    }
}

/// The end of a hook run. `status_set` is true if the charm called status-set for its unit in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEnd {
    /// The handler returned success.
    Handled {
        /// See [`HookEnd`].
        status_set: bool,
    },
    /// The charm has no handler for the event, which counts as success.
    Unhandled {
        /// See [`HookEnd`].
        status_set: bool,
    },
    /// The hook failed, trapped, exceeded a budget, or its commit was refused.
    Failed {
        /// The message for author and operator; cut if it is very long.
        message: String,
        /// See [`HookEnd`].
        status_set: bool,
    },
}

/// One step of the unit's record, with the other contents of its commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The record after the step. Its `seq` is one higher.
    pub record: UnitRecord,
    /// The changes that the uniter makes, as opposed to the charm.
    pub transitions: Transitions,
    /// Implicit statuses after those of the hook, in order.
    pub early: Vec<EarlyEffect>,
    /// A hook that ends without a run.
    pub skipped: Option<Skipped>,
}

/// A hook that ends without a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Skipped {
    /// An operator used `resolved --no-retry`, so it counts as committed (U-28).
    Resolved(Event),
    /// The event lost its meaning, and has no consequences.
    Moot(Event),
}

impl Skipped {
    /// Returns the event that the charm does not get.
    pub fn event(&self) -> &Event {
        match self {
            Self::Resolved(event) | Self::Moot(event) => event,
        }
    }

    /// Returns the journal record for a unit, from the view of the decision.
    pub fn journal(&self, view: &View, unit: &UnitName, at: Timestamp) -> Option<JournalRecord> {
        let record = &view.units.get(unit)?.record;
        let charm = record.charm?.digest;
        let component = view.charms.get(&charm).map_or(charm, |charm| charm.component);
        let outcome = match self {
            Self::Resolved(_) => HookOutcome::Skipped,
            Self::Moot(_) => HookOutcome::Moot,
        };
        let event = self.event().clone();
        Some(JournalRecord::of_no_run(record.seq, event, outcome, view.revision, (charm, component), at))
    }
}

impl Progress {
    /// Creates the next step after `record`, without changes.
    pub(crate) fn after(record: &UnitRecord) -> Self {
        let record = UnitRecord { seq: record.seq.saturating_add(1), ..record.clone() };
        Self { record, transitions: Transitions::default(), early: Vec::new(), skipped: None }
    }

    /// Returns true if this step changes only the time of the next update-status. If the hook had no effects either, it
    /// needs no commit (`docs/hook-model.md` section 0). The driver may keep the new `update_status_due` in memory, and
    /// set it in the record of each view until the unit's next commit.
    pub fn only_rearms(&self, run: &HookRun) -> bool {
        let rearmed = UnitRecord {
            seq: self.record.seq,
            update_status_due: self.record.update_status_due,
            ..run.record.clone()
        };
        run.event == Event::UpdateStatus
            && self.record == rearmed
            && self.transitions == Transitions::default()
            && self.early.is_empty()
            // The journal must show the changes that it absorbed.
            && run.coalesced.is_empty()
    }
}
