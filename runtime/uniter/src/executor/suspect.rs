//! The trial of a hook that may have killed a runner, before its unit starts, and alone.

use periapt_host_api::OperationId;

use super::{Executor, ExecutorCommand, Phase, RunReport, Step, TrialEnd, turn::WaitingOperation};
use crate::{Decision, Jitter};

/// The number of dead runners after which the hook is in error (`docs/design/sandbox.md`).
const DEATHS: u32 = 3;

/// The message for such a hook.
const CRASHED: &str = "the sandbox crashed";

/// A hook that may have killed a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) operation: OperationId,
    /// True during the trial.
    pub(super) on_trial: bool,
}

impl Executor {
    /// Runs a suspect if it is still due. No other hook has started yet. So the executor requests the charm only once:
    /// the model's other units must not wait for a missing charm.
    pub(super) fn try_suspect(&mut self, operation: OperationId, deaths: u32, step: &mut Step<'_>) {
        if !matches!(self.phase, Phase::New) {
            return;
        }
        self.suspicion = Some(Suspicion { operation, on_trial: true });
        match self.resolve(step) {
            Decision::RunHook(run) if run.operation() == operation => match deaths >= DEATHS {
                true => {
                    self.announced = Some(operation);
                    let report = RunReport::failed(CRASHED.to_owned(), step.now.wall);
                    let (end, parts) = report.of_hook(&run, &self.engine);
                    self.commit_hook(*run, end, parts, Jitter::NONE, step);
                }
                false => self.await_charm(WaitingOperation::Hook { charm: run.charm }, step),
            },
            // The unit's next step is another one now.
            _ => self.trial_ended(TrialEnd::Cleared, step),
        }
    }

    /// Ends a trial whose operation is over. Returns false if there is no trial.
    pub(super) fn trial_ends(&mut self, step: &mut Step<'_>) -> bool {
        let on_trial = self.suspicion.is_some_and(|suspicion| suspicion.on_trial);
        if on_trial {
            self.trial_ended(TrialEnd::Cleared, step);
        }
        on_trial
    }

    /// Ends a trial; the unit starts with the others. A hook without its charm stays a suspect.
    pub(super) fn trial_ended(&mut self, tried: TrialEnd, step: &mut Step<'_>) {
        self.phase = Phase::New;
        self.suspicion = match tried {
            TrialEnd::Cleared => None,
            TrialEnd::Left => self.suspicion.map(|suspicion| Suspicion { on_trial: false, ..suspicion }),
        };
        step.command(ExecutorCommand::Tried(tried));
    }
}
