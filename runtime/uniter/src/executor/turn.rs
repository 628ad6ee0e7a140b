//! Waits for a turn: a place among the hooks that run, and of an action, that of its group.

use periapt_host_api::{OperationId, TaskId, budget::BudgetKey, record::CharmRef, view::View};

use super::{Executor, ExecutorCommand, Phase, Step, Turn};
use crate::Decision;

/// What waits for a charm, and then for a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Due {
    /// Some hook that this charm runs.
    Hook { charm: CharmRef },
    /// An action.
    Action { task: TaskId, group: Option<String>, charm: CharmRef },
    /// That a charm is brought into place.
    Deploy { charm: CharmRef },
}

impl Due {
    pub(super) fn charm(&self) -> CharmRef {
        match self {
            Self::Hook { charm } | Self::Action { charm, .. } | Self::Deploy { charm } => *charm,
        }
    }

    /// Whether a decision still is what is waited for, with nothing changed that the wait is about.
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

/// A turn that is waited for.
#[derive(Debug, Clone)]
pub(super) struct TurnWait {
    due: Due,
    /// What the run may use, as it was when the turn was asked for.
    memory: u64,
}

impl Executor {
    /// Queues for a turn.
    pub(super) fn await_turn(&mut self, due: Due, step: &mut Step<'_>) {
        let (group, memory) = match (&due, self.resolve(step)) {
            (_, decision) if !due.is(&decision) => return self.look(step),
            (Due::Hook { .. }, Decision::RunHook(run)) => {
                if self.suspicion.as_ref().is_some_and(|suspicion| suspicion.on_trial) {
                    // Nothing else runs.
                    return self.start_hook(*run, step);
                }
                (None, self.memory(step.view, Some(run.operation())))
            }
            (Due::Action { group, .. }, _) => {
                let machine = step.view.units.get(&self.unit).map(|unit| unit.machine);
                (machine.zip(group.clone()), self.memory(step.view, None))
            }
            _ => return self.look(step),
        };
        self.phase = Phase::Turn(TurnWait { due, memory });
        self.has_turn = true;
        step.command(ExecutorCommand::TakeTurn(Turn { group, memory }));
    }

    /// Whatever changes meanwhile may make something else due than an action; if it does not, the place in the queue is
    /// kept, for who comes again comes last, and in a busy model something always changes. A hook keeps its place anyway:
    /// what runs is what is due by then.
    pub(super) fn while_turn_is_awaited(&mut self, step: &mut Step<'_>) {
        let decision = self.resolve(step);
        let Phase::Turn(TurnWait { due: due @ Due::Action { .. }, .. }) = &self.phase else { return };
        if !due.is(&decision) {
            self.conclude(step);
        }
    }

    /// Runs what is due by now, if the turn is one for that.
    pub(super) fn turn_came(&mut self, step: &mut Step<'_>) {
        let Phase::Turn(TurnWait { due, memory }) = self.phase.clone() else { return };
        match (due, self.resolve(step)) {
            (Due::Hook { .. }, Decision::RunHook(run))
                if memory >= self.memory(step.view, Some(run.operation())) =>
            {
                self.start_hook(*run, step);
            }
            (Due::Action { group, .. }, Decision::RunAction(run))
                if group == run.group && memory >= self.memory(step.view, None) =>
            {
                self.begin_action(*run, step);
            }
            // It is not due any more, or may use more by now.
            _ => self.conclude(step),
        }
    }

    /// The memory that a run may use; for a suspect all, so that nothing runs beside it.
    fn memory(&self, view: &View, operation: Option<OperationId>) -> u64 {
        match &self.suspicion {
            Some(suspicion) if Some(suspicion.operation) == operation => u64::MAX,
            _ => view.budgets(self.unit.application()).value(BudgetKey::HookMemoryLimit),
        }
    }
}
