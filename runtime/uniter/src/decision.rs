//! The words in which the resolver answers, and in which it is told how things went.

use std::collections::BTreeMap;

use periapt_host_api::{
    OperationId, Revision, TaskId, Timestamp, UnitName,
    action::{TaskOutcome, TaskResults},
    commit::{EarlyEffect, Transitions},
    event::Event,
    journal::{HookOutcome, JournalRecord},
    record::{CharmRef, SecretRecord, SeenHashes, UnitRecord},
    secret::{SecretId, SecretRevision},
    view::View,
};

/// What a unit does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Decision {
    /// Send [`before_hook`](crate::before_hook)'s effects, run this hook, then ask
    /// [`hook_ended`](crate::hook_ended) for what to commit.
    RunHook(Box<HookRun>),
    /// Wait for the action's group, resolve again, and if the answer is the same: commit its beginning, run it, then
    /// ask [`action_ended`](crate::action_ended) for what to commit.
    RunAction(Box<ActionRun>),
    /// Bring this charm into place, then ask [`deployed`](crate::deployed) or
    /// [`deploy_failed`](crate::deploy_failed) for what to commit.
    Deploy(Box<DeployRun>),
    /// Commit this; nothing is run. Refused, it is dropped: the view that made the controller refuse it is on
    /// its way, and the unit is resolved anew when it comes.
    Commit(Box<Progress>),
    /// Nothing is due: the agent is idle. Ask again at `wake_at`, and whenever the view changes.
    Idle {
        /// When the clock alone makes something due; none: never.
        wake_at: Option<Timestamp>,
    },
    /// Something is in progress and waits: for a retry, an operator, subordinates. The agent is not idle.
    Wait {
        /// When the clock alone makes something due; none: never.
        wake_at: Option<Timestamp>,
    },
    /// The unit is dead, gone, or not this agent's: look after it no more. No hook runs (U-17).
    Stop,
}

/// One run of one hook, with all that is carried from its decision to its commit.
#[derive(Debug, Clone, PartialEq)]
pub struct HookRun {
    /// The unit.
    pub unit: UnitName,
    /// What the charm is told.
    pub event: Event,
    /// 1 for the first attempt since the back-off was last reset; exact, and over all attempts, if the run is
    /// [durable](Self::must_begin).
    pub attempt: u32,
    /// Failures in a row since the back-off was last reset.
    pub(crate) failures: u32,
    pub(crate) operation: OperationId,
    pub(crate) durable: bool,
    /// What this run absorbs: changes that were merged into it or became moot, for people.
    pub coalesced: Vec<String>,
    /// The charm that the unit runs.
    pub charm: CharmRef,
    /// The record that the run starts from.
    pub record: UnitRecord,
    /// What the run marks as seen when it is committed.
    pub seen: Seen,
    /// The snapshot of the decision; a hook's reads are to be answered from this one.
    pub snapshot: Revision,
    /// When it was decided.
    pub decided_at: Timestamp,
}

impl HookRun {
    /// The id of this run. It stays the same when the run is lost and made again.
    pub fn operation(&self) -> OperationId {
        self.operation
    }

    /// Whether the run leaves traces outside its commit, as it has storage to write to: then what [`begin`](crate::begin)
    /// says is to be committed before it starts.
    pub fn must_begin(&self) -> bool {
        self.durable
    }
}

/// One run of one action. Its beginning is committed before it runs, so that it never runs twice (1.6).
#[derive(Debug, Clone, PartialEq)]
pub struct ActionRun {
    /// The task.
    pub task: TaskId,
    /// The actions of its machine that it must not run beside; none: it runs beside all.
    pub group: Option<String>,
    /// What to commit before it runs, starting from the record's `seq`.
    pub begin: Progress,
    /// The run, from the record that the beginning leaves. Its snapshot is the decision's: reads are to be answered
    /// from the one that shows the beginning.
    pub run: HookRun,
}

/// How an action ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionEnd {
    /// In which way.
    pub outcome: TaskOutcome,
    /// What operators read; cut if it is very long.
    pub message: String,
    /// What it left.
    pub results: TaskResults,
    /// Whether the charm called status-set for its unit in this run.
    pub status_set: bool,
}

/// What the snapshot of a decision held. A commit marks this as seen, not what is newest by then, so that a
/// change that lands while the hook runs makes another hook due (U-3).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// Over settings, trust and addresses.
    pub hashes: SeenHashes,
    /// The leader settings.
    pub leader_settings_version: u64,
    /// The settings.
    pub settings_version: u64,
    /// The host's boot; none if it is not known.
    pub boot_id: Option<String>,
    /// The version of the bag that the event is about; 0 if there is none. Of a batch: of the application's.
    pub bag_version: u64,
    /// Of a batch: the versions of the bags of those who joined or changed.
    pub member_versions: BTreeMap<UnitName, u64>,
    /// How many members of the relation that the event is about have gone, told of or not; without those of whom the unit
    /// is still to be told.
    pub gone: u64,
    /// Whether the relation that the event is about is still in the model.
    pub relation_exists: bool,
    /// The latest revision of the secret that the event is about; 0 if there is none.
    pub secret_latest: SecretRevision,
    /// Of an event about a secret: what the unit was told of the secrets and revisions that are still there.
    pub secrets: BTreeMap<SecretId, SecretRecord>,
    /// Seconds between update-status hooks; 0: off.
    pub update_status_interval: u32,
}

/// One charm to be brought into place.
#[derive(Debug, Clone, PartialEq)]
pub struct DeployRun {
    /// The unit.
    pub unit: UnitName,
    /// The charm that its application wants now.
    pub charm: CharmRef,
    /// The record that it starts from.
    pub record: UnitRecord,
}

impl DeployRun {
    /// The id of this operation. It stays the same when it is lost and made again.
    pub fn operation(&self) -> OperationId {
        OperationId(self.record.seq)
    }

    /// Whether the unit already runs some charm.
    pub fn is_upgrade(&self) -> bool {
        self.record.charm.is_some()
    }
}

/// How a hook run ended. `status_set`: the charm called status-set for its unit in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookEnd {
    /// The handler returned ok.
    Handled {
        /// See above.
        status_set: bool,
    },
    /// The charm has no handler for the event, which counts as success.
    Unhandled {
        /// See above.
        status_set: bool,
    },
    /// It failed, trapped, ran out of a budget, or was refused at commit.
    Failed {
        /// What author and operator read; cut if it is very long.
        message: String,
        /// See above.
        status_set: bool,
    },
}

/// A step of the unit's record, and what goes with it in one commit.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The record afterwards; its `seq` is one more than before.
    pub record: UnitRecord,
    /// What the uniter, not the charm, changes.
    pub transitions: Transitions,
    /// Implicit statuses that follow what the hook sent, in order.
    pub early: Vec<EarlyEffect>,
    /// A hook that is over without having been run.
    pub skipped: Option<Skipped>,
}

/// A hook that is over without having been run.
#[derive(Debug, Clone, PartialEq)]
pub enum Skipped {
    /// `resolved --no-retry`: it counts as committed (U-28).
    Resolved(Event),
    /// It had lost its meaning: nothing follows it.
    Moot(Event),
}

impl Skipped {
    /// What the charm would have been told.
    pub fn event(&self) -> &Event {
        match self {
            Self::Resolved(event) | Self::Moot(event) => event,
        }
    }

    /// Its entry in the journal of a unit, as it stands in the view of the decision.
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
    /// The next step after `record`, with nothing changed yet.
    pub(crate) fn after(record: &UnitRecord) -> Self {
        let record = UnitRecord { seq: record.seq.saturating_add(1), ..record.clone() };
        Self { record, transitions: Transitions::default(), early: Vec::new(), skipped: None }
    }

    /// Whether all that this step changes is when update-status is due next. If the hook had no effects either,
    /// nothing need be written (`docs/hook-model.md` section 0): who looks after the unit may keep the new
    /// `update_status_due` in memory, and put it into the record of each view that it resolves from, until the
    /// unit's next commit.
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
            // What it absorbed is to be seen.
            && run.coalesced.is_empty()
    }
}
