//! What a unit's executor has done by its driver.

use std::time::Duration;

use periapt_host_api::{
    Digest, MachineId, OperationId, Timestamp,
    commit::{EarlyItem, UnitCommit},
    view::View,
};

use super::Dependence;
use crate::HookRun;

/// One thing to do. Those of one input are done in order; none is waited for before the next is begun.
#[derive(Debug, Clone)]
pub enum ExecutorCommand {
    /// Bring a charm into place, and answer with [`ExecutorInput::Charm`](super::ExecutorInput::Charm).
    FetchCharm(Digest),
    /// No answer about the charm is wanted any more, and none may come.
    ForgetCharm,
    /// Queue for a turn, and answer with [`ExecutorInput::Turn`](super::ExecutorInput::Turn). It lasts until it is left.
    TakeTurn(Turn),
    /// Leave the queue, or the turn.
    LeaveTurn,
    /// A hook or an action is about to run: tell whoever finds the culprit if the runner dies.
    Started(OperationId),
    /// It ended and was committed or dropped.
    Ended(OperationId),
    /// Run this, and answer with [`ExecutorInput::Ended`](super::ExecutorInput::Ended).
    Run(Box<Run>),
    /// What runs is to stop soon. Its end is told as any other.
    Interrupt,
    /// Send this commit, and answer with [`ExecutorInput::CommitAnswered`](super::ExecutorInput::CommitAnswered).
    Commit(Box<UnitCommit>),
    /// Send these, and answer with [`ExecutorInput::EarlyAnswered`](super::ExecutorInput::EarlyAnswered).
    SendEarly(Vec<EarlyItem>),
    /// Keep these, in case this process dies before they are sent. May be lost.
    Note(Vec<EarlyItem>),
    /// Feed [`ExecutorInput::Woken`](super::ExecutorInput::Woken) at these times, and at those asked for before no more.
    WakeAt(Wake),
    /// Feed [`ExecutorInput::Touched`](super::ExecutorInput::Touched) when one of these changes.
    Depend(Dependence),
    /// What became of the hook that [`ExecutorInput::Try`](super::ExecutorInput::Try) asked for.
    Tried(TrialEnd),
    /// Look after the unit no more.
    Stop,
    /// End the runner: another one looks after its units.
    Revoked,
}

/// One run of a hook, an action or a script.
#[derive(Debug, Clone)]
pub struct Run {
    /// What is run.
    pub run: HookRun,
    /// The snapshot that answers its reads.
    pub view: View,
    /// What runs it.
    pub kind: RunKind,
}

/// What runs an event's handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunKind {
    /// The charm, for a hook.
    Hook,
    /// The charm, for an action.
    Action,
    /// A shell, for a script that an operator wrote: nothing of the charm's code is loaded.
    Script,
}

/// A turn among the hooks that run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Actions of one group on one machine run one after the other.
    pub group: Option<(MachineId, String)>,
    /// The memory that the run may use, in bytes; [`u64::MAX`]: nothing may run beside it.
    pub memory: u64,
}

/// When an executor is to be woken; each clock by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wake {
    /// By the unit's timers.
    pub at: Option<Timestamp>,
    /// By the steady clock.
    pub after: Option<Duration>,
}

/// What became of a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrialEnd {
    /// It ended, or is not due any more.
    Cleared,
    /// Its charm is not here. It runs when that arrives, and nothing beside it then.
    Left,
}
