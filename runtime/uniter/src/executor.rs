//! The executor of one unit: a state machine with inputs and commands.
//!
//! An [`Executor`] asks the resolver for its unit's next step, and carries it out: it waits for the charm and for a
//! turn, runs the hook, commits the outcome, and waits until the view shows the commit. It has no I/O and no clock. A
//! driver feeds it one [`ExecutorInput`] at a time and carries out each [`ExecutorCommand`], in order. There are two
//! drivers: the agent's runner, with threads, sockets and timers, and the laboratory, with virtual time.
//!
//! Each file of this folder has one transition:
//!
//! | file | from | to |
//! | --- | --- | --- |
//! | `decide.rs` | a change of the view, or a time | the resolver's decision |
//! | `charm.rs` | the request for a charm | the charm is ready, unusable, or not wanted any more |
//! | `turn.rs` | the request for a turn | the turn, or it is not wanted any more |
//! | `run.rs` | the start of a hook or an action | its end, and the commit of its outcome |
//! | `commit.rs` | a commit | its answer |
//! | `settle.rs` | the answer | the view shows its cause |
//! | `suspect.rs` | a hook that may have killed a runner | the result of its trial |
//! | `outbox.rs` | an early effect | it is sent, alone or with a commit |
//!
//! # The end of a hook in each layer
//!
//! | layer | type | content |
//! | --- | --- | --- |
//! | a hook's context (`periapt-hook`) | `HookResults` | the charm's effects |
//! | the sandbox (`periapt-sandbox`) | `HookReport` | the effects, the handler's `HandlerOutcome`, and the costs |
//! | a driver to the executor | [`RunReport`] | the handler's [return](Returned), and the effects |
//! | the unit's record | [`HookEnd`](crate::HookEnd), [`ActionEnd`](crate::ActionEnd) | the basis of the next record |
//! | the journal | `HookOutcome` | the outcome for people |

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use periapt_host_api::{
    Incarnation, OperationId, Timestamp, UnitName, commit::EarlyEffect, usage::Usage, view::View,
};

use crate::{Backoff, Decision, UnitWorkloads, resolve_beside};

mod charm;
mod command;
mod commit;
mod decide;
mod dependencies;
mod input;
mod outbox;
mod run;
mod settle;
mod suspect;
mod turn;

pub use command::{ExecutorCommand, Run, RunKind, TrialEnd, Turn, Wake};
pub use dependencies::{ChangedDependencies, Dependency, DependencyChange, Dependents};
pub use input::{CharmAnswer, ExecutorInput, Now, Returned, RunReport, SendOutcome};
pub use outbox::early_bytes;
pub use run::{begin, hook_ended};

use charm::CharmWait;
use commit::Committing;
use outbox::Outbox;
use run::Running;
use settle::Settling;
use suspect::Suspicion;
use turn::TurnWait;

/// The options of a unit's executor.
#[derive(Debug, Clone)]
pub struct Options {
    /// The unit.
    pub unit: UnitName,
    /// The incarnation of the runner's attachment, which each commit contains.
    pub incarnation: Incarnation,
    /// The engine's name and version, for the journal.
    pub engine: Arc<str>,
    /// The number of the unit's last early item that the controller has.
    pub last_number: u64,
}

/// The phase of a unit's operation.
#[derive(Debug, Clone)]
enum Phase {
    /// The unit has not started.
    New,
    /// No work is due before the view changes, or before this time.
    Resting {
        /// The time; none if there is none.
        wake_at: Option<Timestamp>,
    },
    /// The unit waits for a charm.
    Charm(CharmWait),
    /// The unit waits for a turn.
    Turn(TurnWait),
    /// A hook or an action is running.
    Running(Box<Running>),
    /// A commit is in flight.
    Committing(Box<Committing>),
    /// A commit was answered, and the view does not show the cause yet.
    Settling(Box<Settling>),
    /// A commit was refused. The executor resolves again at a change of the view, or at this time.
    Refused { until: Duration },
    /// The unit is not managed any more.
    Stopped,
}

/// The next time of update-status, after a run of it that had nothing to commit.
#[derive(Debug, Clone, Copy)]
struct NextUpdateStatus {
    seq: u64,
    due: Option<Timestamp>,
}

/// The executor of one unit.
#[derive(Debug, Clone)]
pub struct Executor {
    unit: UnitName,
    incarnation: Incarnation,
    engine: Arc<str>,
    phase: Phase,
    outbox: Outbox,
    rearmed: Option<NextUpdateStatus>,
    /// The `seq` at which the executor reported the unit as idle.
    idle_at: Option<u64>,
    /// The `seq` at which the executor reported a failure that another status hid.
    failure_at: Option<u64>,
    suspicion: Option<Suspicion>,
    /// The run that the executor announced to the driver.
    announced: Option<OperationId>,
    has_turn: bool,
    refusals: Backoff,
    /// The usage of hooks that had nothing to commit. The next commit includes it. It is lost if the runner ends
    /// before.
    uncommitted: Usage,
    wake: Wake,
    depends: BTreeSet<Dependency>,
    /// The workloads beside the unit, as far as the driver has told.
    workloads: UnitWorkloads,
}

/// The handling of one input.
struct Step<'a> {
    view: &'a View,
    now: Now,
    commands: Vec<ExecutorCommand>,
}

impl Step<'_> {
    fn command(&mut self, command: ExecutorCommand) {
        self.commands.push(command);
    }
}

impl Executor {
    /// Creates an executor at the step of the unit's record.
    pub fn new(options: Options) -> Self {
        let Options { unit, incarnation, engine, last_number } = options;
        Self {
            outbox: Outbox::new(last_number),
            unit,
            incarnation,
            engine,
            phase: Phase::New,
            rearmed: None,
            idle_at: None,
            failure_at: None,
            suspicion: None,
            announced: None,
            has_turn: false,
            refusals: commit::refusals(),
            uncommitted: Usage::default(),
            wake: Wake::default(),
            depends: BTreeSet::new(),
            workloads: UnitWorkloads::new(),
        }
    }

    /// Returns the unit's name.
    pub fn unit(&self) -> &UnitName {
        &self.unit
    }

    /// Returns the time at which work is due, if the unit is at rest; none if it is active.
    pub fn rests_until(&self) -> Option<Option<Timestamp>> {
        match self.phase {
            Phase::Resting { wake_at } => Some(wake_at),
            _ => None,
        }
    }

    /// Returns true if all early effects are sent.
    pub fn has_sent_all(&self) -> bool {
        self.outbox.is_empty() && !self.outbox.is_sending() && !self.is_committing()
    }

    /// Returns true if an operation with an unknown outcome is in progress.
    pub fn is_in_flight(&self) -> bool {
        match &self.phase {
            Phase::Settling(settling) => settling.goes_on(),
            Phase::New | Phase::Resting { .. } | Phase::Refused { .. } | Phase::Stopped => false,
            Phase::Charm(_) | Phase::Turn(_) | Phase::Running(_) | Phase::Committing(_) => true,
        }
    }

    /// Returns true if a commit has no answer yet.
    pub fn is_committing(&self) -> bool {
        matches!(self.phase, Phase::Committing(_))
    }

    /// Returns whether a commit of a finished run has no answer yet. The commit may still wait for the early items
    /// before it.
    pub fn is_committing_a_run(&self) -> bool {
        matches!(&self.phase, Phase::Committing(committing) if committing.is_of_a_run())
    }

    /// Returns true if the executor decides again when a frame touches its [dependencies](Dependency). While a hook
    /// runs or a commit has no answer it does not: the next decision is made on the newest view. A change of the unit
    /// itself, such as a cancelled task, always reaches the executor.
    pub fn waits_for_frames(&self) -> bool {
        match self.phase {
            Phase::Resting { .. } | Phase::Charm(_) | Phase::Turn(_) | Phase::Refused { .. } => true,
            Phase::Settling(_) | Phase::Stopped => true,
            Phase::New | Phase::Running(_) | Phase::Committing(_) => false,
        }
    }

    /// Returns true if the unit waits for the view to show the cause of a commit's answer.
    pub fn is_settling(&self) -> bool {
        matches!(self.phase, Phase::Settling(_))
    }

    /// Returns true if the unit waits after a refusal.
    pub fn is_held_up(&self) -> bool {
        matches!(self.phase, Phase::Refused { .. })
    }

    /// Returns the time at which early effects are sent, unless a commit includes them before.
    pub fn early_due(&self) -> Option<Duration> {
        (!self.is_committing()).then(|| self.outbox.due()).flatten()
    }

    /// Handles an input, and returns the resulting commands in order. `view` is the newest one.
    pub fn handle(&mut self, input: ExecutorInput, view: &View, now: Now) -> Vec<ExecutorCommand> {
        let mut step = Step { view, now, commands: Vec::new() };
        match input {
            ExecutorInput::Begin => {
                if matches!(self.phase, Phase::New) {
                    self.decide(&mut step);
                }
            }
            ExecutorInput::Try { operation, deaths } => self.try_suspect(operation, deaths, &mut step),
            ExecutorInput::DependenciesChanged => self.dependencies_changed(&mut step),
            ExecutorInput::Workloads(workloads) => {
                self.workloads = workloads;
                self.dependencies_changed(&mut step);
            }
            ExecutorInput::StoreReplaced => self.store_replaced(&mut step),
            ExecutorInput::Woken => self.woken(&mut step),
            ExecutorInput::Charm(answer) => self.charm_answered(answer, &mut step),
            ExecutorInput::Turn => self.begin_turn(&mut step),
            ExecutorInput::Said(effects) => self.outbox.push(effects, &mut step),
            ExecutorInput::Ended { report, jitter } => self.run_ended(*report, jitter, &mut step),
            ExecutorInput::CommitAnswered(answer) => self.commit_answered(answer, &mut step),
            ExecutorInput::EarlyAnswered(answer) => self.early_answered(&answer, &mut step),
        }
        self.tell_what_it_waits_for(&mut step);
        step.commands
    }

    /// Handles a change of the view that concerns the unit's decision.
    fn dependencies_changed(&mut self, step: &mut Step<'_>) {
        match &self.phase {
            Phase::Resting { .. } | Phase::Refused { .. } => self.decide(step),
            Phase::Charm(_) => self.while_charm_is_awaited(step),
            Phase::Turn(_) => self.while_turn_is_awaited(step),
            Phase::Running(_) => self.while_running(step),
            Phase::Settling(_) => self.settle(step),
            Phase::New | Phase::Committing(_) | Phase::Stopped => {}
        }
    }

    /// Handles a view from another store, which may never show the awaited commit.
    fn store_replaced(&mut self, step: &mut Step<'_>) {
        match &mut self.phase {
            Phase::Settling(_) => self.settled(step),
            Phase::Committing(committing) => committing.store_replaced(),
            _ => self.dependencies_changed(step),
        }
    }

    /// Handles a wake-up, on time or early.
    fn woken(&mut self, step: &mut Step<'_>) {
        self.send_what_is_due(step);
        match &self.phase {
            Phase::Resting { wake_at: Some(at) } if *at <= step.now.timer => self.decide(step),
            Phase::Refused { until } if *until <= step.now.steady => self.decide(step),
            Phase::Charm(_) => self.ask_for_charm_again(step),
            Phase::Committing(_) => self.send_commit_again(step),
            Phase::Settling(_) => self.settle(step),
            _ => {}
        }
    }

    /// Resolves the unit with the newest view, to which it adds an uncommitted time of update-status.
    fn resolve(&mut self, step: &Step<'_>) -> Decision {
        let now = step.now.timer;
        let Some(rearmed) = self.rearmed else {
            return resolve_beside(step.view, &self.unit, &self.workloads, now);
        };
        let mut view = step.view.clone();
        match view.units.get_mut(&self.unit) {
            Some(unit) if unit.record.seq == rearmed.seq => unit.record.update_status_due = rearmed.due,
            _ => self.rearmed = None,
        }
        resolve_beside(&view, &self.unit, &self.workloads, now)
    }

    /// Returns the `seq` of the unit's record in the view.
    fn seq(&self, view: &View) -> Option<u64> {
        view.units.get(&self.unit).map(|unit| unit.record.seq)
    }

    fn leave(&mut self, effects: impl IntoIterator<Item = EarlyEffect>, step: &mut Step<'_>) {
        let wall = step.now.wall;
        self.outbox.push(effects.into_iter().map(|effect| (wall, effect)), step);
    }

    fn leave_turn(&mut self, step: &mut Step<'_>) {
        if std::mem::take(&mut self.has_turn) {
            step.command(ExecutorCommand::LeaveTurn);
        }
    }

    /// Ends an operation with any outcome, and releases the driver's resources for it.
    fn end_operation(&mut self, step: &mut Step<'_>) {
        self.leave_turn(step);
        if let Some(operation) = self.announced.take() {
            step.command(ExecutorCommand::Ended(operation));
        }
    }

    /// Ends an operation, and looks for the next one.
    fn conclude(&mut self, step: &mut Step<'_>) {
        self.end_operation(step);
        match self.trial_ends(step) {
            true => {}
            false => self.decide(step),
        }
    }

    fn tell_what_it_waits_for(&mut self, step: &mut Step<'_>) {
        let wake = self.wakes();
        if wake != self.wake {
            self.wake = wake;
            step.command(ExecutorCommand::WakeAt(wake));
        }
        if !self.waits_for_frames() {
            return;
        }
        let depends = match self.phase {
            Phase::Stopped => BTreeSet::new(),
            // The cause of the refusal is unknown, so any change may remove it.
            Phase::Refused { .. } => BTreeSet::from([Dependency::Everything]),
            _ => dependencies::of(step.view, &self.unit),
        };
        if depends != self.depends {
            let dependence = DependencyChange {
                lost: self.depends.difference(&depends).cloned().collect(),
                gained: depends.difference(&self.depends).cloned().collect(),
            };
            self.depends = depends;
            step.command(ExecutorCommand::Depend(dependence));
        }
    }

    /// Returns the next wake-up time on each of the two clocks.
    fn wakes(&self) -> Wake {
        let (mut at, mut after) = (None, None);
        match &self.phase {
            Phase::Resting { wake_at } => at = *wake_at,
            Phase::Refused { until } => after = Some(*until),
            Phase::Charm(wait) => after = wait.asks_again_at(),
            Phase::Committing(committing) => after = committing.sends_again_at(),
            Phase::Settling(settling) => after = settling.gives_up_at(),
            Phase::New | Phase::Turn(_) | Phase::Running(_) | Phase::Stopped => {}
        }
        let early = if self.is_committing() { self.outbox.sends_again_at() } else { self.outbox.due() };
        after = [after, early].into_iter().flatten().min();
        Wake { at, after }
    }
}
