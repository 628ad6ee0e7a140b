//! The executor of one unit: what happened goes in, commands come out.
//!
//! An [`Executor`] asks the resolver what its unit does next, and sees that through: the charm arrives, the turn comes,
//! the hook runs, its outcome is committed, and the view shows the commit. It does no I/O and knows no clock. A driver
//! feeds it one [`ExecutorInput`] at a time and carries out each [`ExecutorCommand`], in order. There are two drivers: the agent's
//! runner, with threads, sockets and timers, and the laboratory, on virtual time.
//!
//! A file of this folder holds one transition:
//!
//! | file | from | to |
//! | --- | --- | --- |
//! | `look.rs` | the view changed, or a time came | what the resolver decided |
//! | `charm.rs` | a charm is asked for | it is here, unusable, or not wanted any more |
//! | `turn.rs` | a turn is asked for | it came, or is not wanted any more |
//! | `run.rs` | a hook or an action begins | it ended, and its outcome is to be committed |
//! | `commit.rs` | a commit is sent | it is answered |
//! | `settle.rs` | it is answered | the view shows why |
//! | `suspect.rs` | a hook that may have killed a runner | it was tried |
//! | `outbox.rs` | an effect left a hook early | it was sent, alone or with a commit |
//!
//! # How a hook ended, layer by layer
//!
//! Each layer has one word for it:
//!
//! | layer | word | holds |
//! | --- | --- | --- |
//! | a hook's context (`periapt-hook`) | `Gathered` | what the charm asked for |
//! | the sandbox (`periapt-sandbox`) | `HookReport` | that, how the handler ended (`HandlerOutcome`), and what it cost |
//! | a driver to the executor | [`RunReport`] | how the handler [returned](Returned), and what it left |
//! | the unit's record | [`HookEnd`](crate::HookEnd), [`ActionEnd`](crate::ActionEnd) | what the next record follows from |
//! | the journal | `HookOutcome` | what people read |

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use periapt_host_api::{
    Incarnation, OperationId, Timestamp, UnitName, commit::EarlyEffect, usage::Usage, view::View,
};

use crate::{Backoff, Decision};

mod charm;
mod command;
mod commit;
mod dependencies;
mod input;
mod look;
mod outbox;
mod report;
mod run;
mod settle;
mod suspect;
mod turn;

pub use command::{ExecutorCommand, Run, RunKind, TrialEnd, Turn, Wake};
pub use dependencies::{Dependence, Dependency, Dependents, Touched};
pub use input::{CharmAnswer, ExecutorInput, Now, SendOutcome};
pub use outbox::early_bytes;
pub use report::{Returned, RunReport};

use charm::CharmWait;
use commit::Committing;
use outbox::Outbox;
use run::Running;
use settle::Settling;
use suspect::Suspicion;
use turn::TurnWait;

/// What a unit's executor starts with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The unit.
    pub unit: UnitName,
    /// The runner's attachment, which each commit names.
    pub incarnation: Incarnation,
    /// The version of what runs hooks, for the journal.
    pub engine: Arc<str>,
    /// The number of the last early item that the controller has of the unit.
    pub last_number: u64,
}

/// How far a unit's operation is.
#[derive(Debug, Clone)]
enum Phase {
    /// It has not begun.
    New,
    /// Nothing is due before the view changes, or before this time.
    Resting {
        /// None: never.
        wake_at: Option<Timestamp>,
    },
    /// Waits for a charm.
    Charm(CharmWait),
    /// Waits for a turn.
    Turn(TurnWait),
    /// A hook or an action runs.
    Running(Box<Running>),
    /// A commit is under way.
    Committing(Box<Committing>),
    /// A commit was answered, and the view does not show why yet.
    Settling(Box<Settling>),
    /// A commit was refused; looks again when the view changes, or when this time has come.
    Refused { until: Duration },
    /// The unit is looked after no more.
    Stopped,
}

/// When update-status is due next, decided by a run of it that had nothing to write.
#[derive(Debug, Clone, Copy)]
struct Rearmed {
    seq: u64,
    due: Option<Timestamp>,
}

/// One unit's executor.
#[derive(Debug, Clone)]
pub struct Executor {
    unit: UnitName,
    incarnation: Incarnation,
    engine: Arc<str>,
    phase: Phase,
    outbox: Outbox,
    rearmed: Option<Rearmed>,
    /// The `seq` at which idle was reported.
    idle_at: Option<u64>,
    /// The `seq` at which a failure was reported that another status hid.
    failure_at: Option<u64>,
    suspicion: Option<Suspicion>,
    /// The run that the driver was told of.
    announced: Option<OperationId>,
    has_turn: bool,
    refusals: Backoff,
    /// What hooks used that had nothing to commit. It goes with the next commit; if the runner ends before, nobody is
    /// charged for it.
    uncommitted: Usage,
    wake: Wake,
    depends: BTreeSet<Dependency>,
}

/// What one input is handled with.
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
    /// Stands where the unit's record says.
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
        }
    }

    /// Whose it is.
    pub fn unit(&self) -> &UnitName {
        &self.unit
    }

    /// When the clock alone makes something due, if the unit is at rest; none: it does something, or is about to.
    pub fn rests_until(&self) -> Option<Option<Timestamp>> {
        match self.phase {
            Phase::Resting { wake_at } => Some(wake_at),
            _ => None,
        }
    }

    /// Whether all that left its hooks early was sent.
    pub fn has_sent_all(&self) -> bool {
        self.outbox.is_empty() && !self.outbox.is_sending() && !self.is_committing()
    }

    /// Whether an operation is in progress: it is not decided yet what becomes of it.
    pub fn is_in_flight(&self) -> bool {
        match &self.phase {
            Phase::Settling(settling) => settling.goes_on(),
            Phase::New | Phase::Resting { .. } | Phase::Refused { .. } | Phase::Stopped => false,
            Phase::Charm(_) | Phase::Turn(_) | Phase::Running(_) | Phase::Committing(_) => true,
        }
    }

    /// Whether a commit was decided on, and has no answer yet.
    pub fn is_committing(&self) -> bool {
        matches!(self.phase, Phase::Committing(_))
    }

    /// Returns whether a commit of a finished run has no answer yet. The commit may still wait for the early items before it.
    pub fn is_committing_a_run(&self) -> bool {
        matches!(&self.phase, Phase::Committing(committing) if committing.is_of_a_run())
    }

    /// Returns whether the executor decides again when a frame touches its [dependencies](Dependency). While a hook runs or
    /// a commit has no answer it does not: the next decision is made on the newest view. A change of the unit itself, such as
    /// a cancelled task, always reaches the executor.
    pub fn waits_for_frames(&self) -> bool {
        match self.phase {
            Phase::Resting { .. } | Phase::Charm(_) | Phase::Turn(_) | Phase::Refused { .. } => true,
            Phase::Settling(_) | Phase::Stopped => true,
            Phase::New | Phase::Running(_) | Phase::Committing(_) => false,
        }
    }

    /// Whether it waits for its view to show what a commit was answered with.
    pub fn is_settling(&self) -> bool {
        matches!(self.phase, Phase::Settling(_))
    }

    /// Whether it waits after a refusal.
    pub fn is_held_up(&self) -> bool {
        matches!(self.phase, Phase::Refused { .. })
    }

    /// When what left its hooks early is sent, if no commit takes it along before.
    pub fn early_due(&self) -> Option<Duration> {
        (!self.is_committing()).then(|| self.outbox.due()).flatten()
    }

    /// Takes in what happened, and says what is to be done about it, in order. `view` is the newest one.
    pub fn handle(&mut self, input: ExecutorInput, view: &View, now: Now) -> Vec<ExecutorCommand> {
        let mut step = Step { view, now, commands: Vec::new() };
        match input {
            ExecutorInput::Begin => {
                if matches!(self.phase, Phase::New) {
                    self.look(&mut step);
                }
            }
            ExecutorInput::Try { operation, deaths } => self.try_suspect(operation, deaths, &mut step),
            ExecutorInput::Touched => self.touched(&mut step),
            ExecutorInput::StoreReplaced => self.store_replaced(&mut step),
            ExecutorInput::Woken => self.woken(&mut step),
            ExecutorInput::Charm(answer) => self.charm_answered(answer, &mut step),
            ExecutorInput::Turn => self.turn_came(&mut step),
            ExecutorInput::Said(effects) => self.outbox.push(effects, &mut step),
            ExecutorInput::Ended { report, jitter } => self.run_ended(*report, jitter, &mut step),
            ExecutorInput::CommitAnswered(answer) => self.commit_answered(answer, &mut step),
            ExecutorInput::EarlyAnswered(answer) => self.early_answered(&answer, &mut step),
        }
        self.tell_what_it_waits_for(&mut step);
        step.commands
    }

    /// The view changed in something that the unit's decision depends on.
    fn touched(&mut self, step: &mut Step<'_>) {
        match &self.phase {
            Phase::Resting { .. } | Phase::Refused { .. } => self.look(step),
            Phase::Charm(_) => self.while_charm_is_awaited(step),
            Phase::Turn(_) => self.while_turn_is_awaited(step),
            Phase::Running(_) => self.while_running(step),
            Phase::Settling(_) => self.settle(step),
            Phase::New | Phase::Committing(_) | Phase::Stopped => {}
        }
    }

    /// What a commit was to bring may never be in a view of another store.
    fn store_replaced(&mut self, step: &mut Step<'_>) {
        match self.phase {
            Phase::Settling(_) => self.settled(step),
            _ => self.touched(step),
        }
    }

    /// A time came that it asked to be woken at, or another did.
    fn woken(&mut self, step: &mut Step<'_>) {
        self.send_what_is_due(step);
        match &self.phase {
            Phase::Resting { wake_at: Some(at) } if *at <= step.now.timer => self.look(step),
            Phase::Refused { until } if *until <= step.now.steady => self.look(step),
            Phase::Charm(_) => self.ask_for_charm_again(step),
            Phase::Committing(_) => self.send_commit_again(step),
            Phase::Settling(_) => self.settle(step),
            _ => {}
        }
    }

    /// The newest view, with what it does not know of update-status; and what it makes due.
    fn resolve(&mut self, step: &Step<'_>) -> Decision {
        let now = step.now.timer;
        let Some(rearmed) = self.rearmed else { return crate::resolve(step.view, &self.unit, now) };
        let mut view = step.view.clone();
        match view.units.get_mut(&self.unit) {
            Some(unit) if unit.record.seq == rearmed.seq => unit.record.update_status_due = rearmed.due,
            _ => self.rearmed = None,
        }
        crate::resolve(&view, &self.unit, now)
    }

    /// The `seq` of the unit's record, as the view has it.
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

    /// An operation is over, however it went: nothing of it is left with the driver.
    fn end_operation(&mut self, step: &mut Step<'_>) {
        self.leave_turn(step);
        if let Some(operation) = self.announced.take() {
            step.command(ExecutorCommand::Ended(operation));
        }
    }

    /// An operation is over, and what comes next is looked for.
    fn conclude(&mut self, step: &mut Step<'_>) {
        self.end_operation(step);
        match self.trial_ends(step) {
            true => {}
            false => self.look(step),
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
            // What made the controller refuse it may be anything.
            Phase::Refused { .. } => BTreeSet::from([Dependency::Everything]),
            _ => dependencies::of(step.view, &self.unit),
        };
        if depends != self.depends {
            let dependence = Dependence {
                no_more: self.depends.difference(&depends).cloned().collect(),
                from_now_on: depends.difference(&self.depends).cloned().collect(),
            };
            self.depends = depends;
            step.command(ExecutorCommand::Depend(dependence));
        }
    }

    /// The first time at which it is to be woken, by each of the two clocks.
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
