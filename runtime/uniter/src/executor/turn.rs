//! The wait for a turn: a place among the running hooks, and for an action the turn of its group.

use periapt_host_api::{OperationId, TaskId, budget::BudgetKey, record::CharmRef, view::View};

use super::{Executor, ExecutorCommand, Phase, Step, Turn};
use crate::Decision;

/// The operation that waits for a charm, and then for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WaitingOperation {
    /// A hook of this charm.
    Hook { charm: CharmRef },
    /// An action.
    Action { task: TaskId, group: Option<String>, charm: CharmRef },
    /// The deployment of this charm.
    Deploy { charm: CharmRef },
}

impl WaitingOperation {
    pub(super) fn charm(&self) -> CharmRef {
        match self {
            Self::Hook { charm } | Self::Action { charm, .. } | Self::Deploy { charm } => *charm,
        }
    }

    /// Returns true if a decision is still the awaited one, in all respects that concern the wait.
    pub(super) fn is(&self, decision: &Decision) -> bool {
        match (self, decision) {
            (Self::Hook { charm }, Decision::RunHook(run)) => run.charm == *charm,
            (Self::Action { task, group, charm }, Decision::RunAction(run)) => {
                (run.task, &run.group, run.run.charm) == (*task, group, *charm)
            }
            (Self::Deploy { charm }, Decision::Deploy(run)) => run.charm == *charm,
            _ => false,
        }
    }
}

/// The wait for a turn.
#[derive(Debug, Clone)]
pub(super) struct TurnWait {
    due: WaitingOperation,
    /// The memory budget at the time of the request.
    memory: u64,
}

impl Executor {
    /// Queues for a turn.
    pub(super) fn await_turn(&mut self, due: WaitingOperation, step: &mut Step<'_>) {
        let (group, memory) = match (&due, self.resolve(step)) {
            (_, decision) if !due.is(&decision) => return self.conclude(step),
            (WaitingOperation::Hook { .. }, Decision::RunHook(run)) => {
                if self.suspicion.as_ref().is_some_and(|suspicion| suspicion.on_trial) {
                    // No other hook runs during the trial.
                    return self.start_hook(*run, step);
                }
                (None, self.memory(step.view, Some(run.operation())))
            }
            (WaitingOperation::Action { group, .. }, _) => {
                let machine = step.view.units.get(&self.unit).map(|unit| unit.machine);
                (machine.zip(group.clone()), self.memory(step.view, None))
            }
            _ => return self.conclude(step),
        };
        self.phase = Phase::Turn(TurnWait { due, memory });
        self.has_turn = true;
        step.command(ExecutorCommand::TakeTurn(Turn { group, memory }));
    }

    /// Ends an action's wait if the action is not due any more. Otherwise it keeps its place in the queue: in a busy
    /// model with frequent changes, a new place would always be the last. A hook always keeps its place, and its turn
    /// serves any hook that is due by then.
    pub(super) fn while_turn_is_awaited(&mut self, step: &mut Step<'_>) {
        let decision = self.resolve(step);
        let Phase::Turn(TurnWait { due: due @ WaitingOperation::Action { .. }, .. }) = &self.phase else {
            return;
        };
        if !due.is(&decision) {
            self.conclude(step);
        }
    }

    /// Runs the work that is due now, if the turn fits it.
    pub(super) fn begin_turn(&mut self, step: &mut Step<'_>) {
        let Phase::Turn(TurnWait { due, memory }) = self.phase.clone() else { return };
        match (due, self.resolve(step)) {
            (WaitingOperation::Hook { .. }, Decision::RunHook(run))
                if memory >= self.memory(step.view, Some(run.operation())) =>
            {
                self.start_hook(*run, step);
            }
            (WaitingOperation::Action { group, .. }, Decision::RunAction(run))
                if group == run.group && memory >= self.memory(step.view, None) =>
            {
                self.begin_action(*run, step);
            }
            // The work is not due any more, or its budget has grown.
            _ => self.conclude(step),
        }
    }

    /// Returns the memory budget of a run; for a suspect all memory, so that it runs alone.
    fn memory(&self, view: &View, operation: Option<OperationId>) -> u64 {
        match &self.suspicion {
            Some(suspicion) if Some(suspicion.operation) == operation => u64::MAX,
            _ => view.budgets(self.unit.application()).value(BudgetKey::HookMemoryLimit),
        }
    }
}
