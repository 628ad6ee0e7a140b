//! The wait for a charm on this host. The unit's status shows the reason of a long wait.

use std::time::Duration;

use periapt_host_api::status::{AgentStatus, StatusInfo};

use super::{
    CharmAnswer, Executor, ExecutorCommand, Phase, Step, TrialEnd,
    commit::{CommitSubject, CommittedParts},
    turn::WaitingOperation,
};
use crate::{Backoff, Decision, DeployRun, Jitter};

/// The wait before the unit's status shows the reason: a restarting controller is back by then.
const TOLD_AFTER: Duration = Duration::from_secs(3);

/// The first and the longest wait between requests for a charm. Until its own next attempt, the keeper answers from
/// memory.
const ASKED_AGAIN: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// The wait for a charm.
#[derive(Debug, Clone)]
pub(super) struct CharmWait {
    /// The operation that needs the charm.
    due: WaitingOperation,
    began: Duration,
    reported: Option<ReportedStatus>,
    backoff: Backoff,
    /// The time of the next request; none while one is in flight.
    again_at: Option<Duration>,
}

/// The status of a unit whose charm is not available.
#[derive(Debug, Clone)]
struct ReportedStatus {
    reason: String,
    /// The status of the unit's agent before.
    before: Option<StatusInfo<AgentStatus>>,
}

impl CharmWait {
    pub(super) fn asks_again_at(&self) -> Option<Duration> {
        self.again_at
    }
}

impl Executor {
    /// Starts to wait for a charm, until it is ready or not needed any more.
    pub(super) fn await_charm(&mut self, due: WaitingOperation, step: &mut Step<'_>) {
        let digest = due.charm().digest;
        let [first, last] = ASKED_AGAIN;
        self.phase = Phase::Charm(CharmWait {
            due,
            began: step.now.steady,
            reported: None,
            backoff: Backoff::new(first, last),
            again_at: None,
        });
        step.command(ExecutorCommand::FetchCharm(digest));
    }

    pub(super) fn ask_for_charm_again(&mut self, step: &mut Step<'_>) {
        let Phase::Charm(wait) = &mut self.phase else { return };
        if wait.again_at.is_some_and(|at| at <= step.now.steady) {
            wait.again_at = None;
            step.command(ExecutorCommand::FetchCharm(wait.due.charm().digest));
        }
    }

    /// Ends the wait if the unit now needs another charm, or none.
    pub(super) fn while_charm_is_awaited(&mut self, step: &mut Step<'_>) {
        let decision = self.resolve(step);
        let Phase::Charm(wait) = &mut self.phase else { return };
        if wait.due.is(&decision) {
            return;
        }
        let (reported, asked) = (wait.reported.take(), wait.again_at.is_none());
        if asked {
            step.command(ExecutorCommand::ForgetCharm);
        }
        self.take_back(reported, step);
        self.conclude(step);
    }

    /// Handles the driver's answer about a charm.
    pub(super) fn charm_answered(&mut self, answer: CharmAnswer, step: &mut Step<'_>) {
        let Phase::Charm(wait) = &mut self.phase else { return };
        if wait.again_at.is_some() {
            return;
        }
        let usable = match answer {
            CharmAnswer::Away(reason) => {
                if self.suspicion.as_ref().is_some_and(|suspicion| suspicion.on_trial) {
                    return self.trial_ended(TrialEnd::Left, step);
                }
                let over = step.now.steady.saturating_sub(wait.began) >= TOLD_AFTER;
                wait.again_at = Some(step.now.steady.saturating_add(wait.backoff.failed()));
                if over {
                    self.report_unavailable(reason, step);
                }
                return;
            }
            CharmAnswer::Ready => Ok(()),
            CharmAnswer::Unusable { message, jitter } => Err((message, jitter)),
        };
        let (due, reported) = (wait.due.clone(), wait.reported.take());
        self.take_back(reported, step);
        match due {
            // The hook's failure will show the charm's error.
            WaitingOperation::Hook { .. } | WaitingOperation::Action { .. } => self.await_turn(due, step),
            WaitingOperation::Deploy { .. } => match self.resolve(step) {
                Decision::Deploy(run) if due.charm() == run.charm => self.deploy(&run, usable, step),
                _ => self.decide(step),
            },
        }
    }

    fn deploy(&mut self, run: &DeployRun, usable: Result<(), (String, Jitter)>, step: &mut Step<'_>) {
        let progress = match usable {
            Ok(()) => crate::deployed(run),
            Err((message, jitter)) => crate::deploy_failed(run, &message, step.now.timer, jitter),
        };
        self.leave(progress.early.clone(), step);
        self.commit(run.record.seq, &progress, CommittedParts::default(), CommitSubject::Bookkeeping, step);
    }

    /// Reports the reason why a charm is not available, unless the status shows it.
    fn report_unavailable(&mut self, reason: String, step: &mut Step<'_>) {
        let Phase::Charm(wait) = &mut self.phase else { return };
        if wait.reported.as_ref().is_some_and(|reported| reported.reason == reason) {
            return;
        }
        let before = match wait.reported.take() {
            Some(reported) => reported.before,
            None => step.view.units.get(&self.unit).map(|unit| unit.agent_status.clone()),
        };
        let digest = wait.due.charm().digest;
        let effects = crate::charm_away(&self.unit, digest, &reason);
        wait.reported = Some(ReportedStatus { reason, before });
        self.leave(effects, step);
    }

    /// Restores the status once the charm has arrived or is not wanted any more.
    fn take_back(&mut self, reported: Option<ReportedStatus>, step: &mut Step<'_>) {
        let Some(ReportedStatus { before, .. }) = reported else { return };
        let record = step.view.units.get(&self.unit).map(|unit| &unit.record);
        let effect = before.zip(record).and_then(|(before, record)| crate::charm_arrived(record, &before));
        // This has just reported the failure. Any report of the idle status came before.
        (self.idle_at, self.failure_at) = (None, record.map(|record| record.seq));
        self.leave(effect, step);
    }
}
