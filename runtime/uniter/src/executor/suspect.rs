//! Tries a hook that may have killed a runner: before its unit begins, and alone.

use periapt_host_api::OperationId;

use super::{Executor, ExecutorCommand, Phase, RunReport, Step, TrialEnd, turn::Due};
use crate::{Decision, Jitter};

/// A hook that had this many runners die under it is a hook error (`docs/design/sandbox.md`).
const DEATHS: u32 = 3;

/// What author and operator read of such a hook.
const CRASHED: &str = "the sandbox crashed";

/// A hook that may have killed a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) operation: OperationId,
    /// Whether it is tried now.
    pub(super) on_trial: bool,
}

impl Executor {
    /// Runs a suspect, if it is still due. It is alone: nothing else has started yet. So its charm is asked for once: if it
    /// is not here, the model's other units do not wait.
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
                    let (end, kept) = report.of_hook(&run, &self.engine);
                    self.commit_hook(*run, end, kept, Jitter::NONE, step);
                }
                false => self.await_charm(Due::Hook { charm: run.charm }, step),
            },
            // The unit went another way meanwhile.
            _ => self.trial_ended(TrialEnd::Cleared, step),
        }
    }

    /// Ends a trial whose operation is over; false if there is none.
    pub(super) fn trial_ends(&mut self, step: &mut Step<'_>) -> bool {
        let on_trial = self.suspicion.is_some_and(|suspicion| suspicion.on_trial);
        if on_trial {
            self.trial_ended(TrialEnd::Cleared, step);
        }
        on_trial
    }

    /// The unit begins when the others do. One whose charm is not here stays a suspect.
    pub(super) fn trial_ended(&mut self, tried: TrialEnd, step: &mut Step<'_>) {
        self.phase = Phase::New;
        self.suspicion = match tried {
            TrialEnd::Cleared => None,
            TrialEnd::Left => self.suspicion.map(|suspicion| Suspicion { on_trial: false, ..suspicion }),
        };
        step.command(ExecutorCommand::Tried(tried));
    }
}
