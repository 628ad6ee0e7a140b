//! The commands of an executor to its driver.

use std::time::Duration;

use periapt_host_api::{
    Digest, MachineId, OperationId, Timestamp,
    commit::{EarlyItem, UnitCommit},
    view::View,
};

use super::DependencyChange;
use crate::HookRun;

/// One command. The driver starts the commands of one input in order, without waiting for each other.
#[derive(Debug, Clone)]
pub enum ExecutorCommand {
    /// Fetch a charm, and answer with [`ExecutorInput::Charm`](super::ExecutorInput::Charm).
    FetchCharm(Digest),
    /// Cancel the request for a charm. No answer may come.
    ForgetCharm,
    /// Queue for a turn, and answer with [`ExecutorInput::Turn`](super::ExecutorInput::Turn). The turn lasts until
    /// `LeaveTurn`.
    TakeTurn(Turn),
    /// Leave the queue or the turn.
    LeaveTurn,
    /// Announce that a hook or an action is about to run, for the search for suspects if the runner
    /// dies.
    Started(OperationId),
    /// Announce that the run ended and was committed or dropped.
    Ended(OperationId),
    /// Run this hook or action, and answer with [`ExecutorInput::Ended`](super::ExecutorInput::Ended).
    Run(Box<Run>),
    /// Stop the current run soon. Its end is reported like any other.
    Interrupt,
    /// Send this commit, and answer with [`ExecutorInput::CommitAnswered`](super::ExecutorInput::CommitAnswered).
    Commit(Box<UnitCommit>),
    /// Send these items, and answer with [`ExecutorInput::EarlyAnswered`](super::ExecutorInput::EarlyAnswered).
    SendEarly(Vec<EarlyItem>),
    /// Keep these items in case this process dies before they are sent. The command may be lost.
    Note(Vec<EarlyItem>),
    /// Feed [`ExecutorInput::Woken`](super::ExecutorInput::Woken) at these times, which replace earlier ones.
    WakeAt(Wake),
    /// Feed [`ExecutorInput::DependenciesChanged`](super::ExecutorInput::DependenciesChanged) when one of these
    /// dependencies changes.
    Depend(DependencyChange),
    /// Take the result of the trial that [`ExecutorInput::Try`](super::ExecutorInput::Try) started.
    Tried(TrialEnd),
    /// Stop managing the unit.
    Stop,
    /// End the runner, because another one manages its units.
    Revoked,
}

/// One run of a hook, an action or a script.
#[derive(Debug, Clone)]
pub struct Run {
    /// The hook or action.
    pub run: HookRun,
    /// The view that answers its reads.
    pub view: View,
    /// The kind of the run.
    pub kind: RunKind,
}

/// The kind of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// The charm handles a hook.
    Hook,
    /// The charm handles an action.
    Action,
    /// A shell runs an operator's script, without the charm's code.
    Script,
}

/// A turn among the running hooks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// The group of an action on its machine. Actions of one group run one after the other.
    pub group: Option<(MachineId, String)>,
    /// The memory budget of the run, in bytes; [`u64::MAX`] means that it must run alone.
    pub memory: u64,
}

/// The wake-up times of an executor, one for each clock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wake {
    /// The time on the clock of the unit's timers.
    pub at: Option<Timestamp>,
    /// The time on the monotonic clock.
    pub after: Option<Duration>,
}

/// The result of a suspect's trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// The hook ended, or is not due any more.
    Cleared,
    /// The hook's charm is not available. The hook will run alone when the charm arrives.
    Left,
}
