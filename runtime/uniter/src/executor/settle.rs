//! The wait until the view shows the cause of a commit's answer.

use std::time::Duration;

use periapt_host_api::{UnitName, commit::EarlyItem, record::CharmRef, view::View};

use super::{Executor, ExecutorCommand, Now, Phase, Step};
use crate::HookRun;

/// The longest wait for the stream to show why a commit was stale, or an accepted one of a store that was replaced.
const STALE_WITHIN: Duration = Duration::from_secs(15);

/// The awaited state of the view.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// The record of an accepted commit. The wait has a limit if the answer may come from a store that was replaced
    /// since.
    Reached { seq: u64, until: Option<Duration> },
    /// A later record than this one: a commit after it was stale.
    Moved { from: u64, until: Duration },
    /// Another charm than this one, which an operator replaced during its deployment. This wait has no limit: the frame
    /// with the new charm is on its way, and if the connection breaks, it comes with the next one.
    Replaced { charm: Option<CharmRef> },
    /// The absence of the unit, whose last commit was refused at a repeat.
    Gone { early: Vec<EarlyItem>, until: Duration },
}

impl Awaited {
    pub(super) fn reached_if_shown(seq: u64, now: Now) -> Self {
        Self::Reached { seq, until: Some(now.steady.saturating_add(STALE_WITHIN)) }
    }

    pub(super) fn moved(from: u64, now: Now) -> Self {
        Self::Moved { from, until: now.steady.saturating_add(STALE_WITHIN) }
    }

    pub(super) fn gone(early: Vec<EarlyItem>, now: Now) -> Self {
        Self::Gone { early, until: now.steady.saturating_add(STALE_WITHIN) }
    }

    fn is_shown(&self, view: &View, name: &UnitName) -> bool {
        let unit = view.units.get(name);
        match self {
            Self::Reached { seq, .. } => unit.is_none_or(|unit| unit.record.seq >= *seq),
            Self::Moved { from, .. } => unit.is_none_or(|unit| unit.record.seq != *from),
            // A refresh to the same archive also raises the modified version, so the wait ends even if one frame
            // contains several refreshes.
            Self::Replaced { charm } => {
                let application = unit.and_then(|unit| view.applications.get(unit.name.application()));
                application.is_none_or(|application| Some(application.charm) != *charm)
            }
            Self::Gone { .. } => unit.is_none(),
        }
    }
}

/// The step after the wait.
#[derive(Debug, Clone)]
pub(super) enum Then {
    /// The end of the operation.
    Decide,
    /// The run of the hook that the commit announced, on the view of its decision.
    RunHook { view: Box<View>, run: Box<HookRun> },
    /// The run of the action whose start was committed.
    RunAction(Box<HookRun>),
}

/// An answered commit whose cause is not in the view yet.
#[derive(Debug, Clone)]
pub(super) struct Settling {
    awaited: Awaited,
    then: Then,
}

impl Settling {
    /// Returns true if a run follows.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self.then, Then::Decide)
    }

    pub(super) fn gives_up_at(&self) -> Option<Duration> {
        match self.awaited {
            Awaited::Moved { until, .. } | Awaited::Gone { until, .. } => Some(until),
            Awaited::Reached { until, .. } => until,
            Awaited::Replaced { .. } => None,
        }
    }
}

impl Executor {
    /// Waits until the view shows a state, which may be at once.
    pub(super) fn await_view(&mut self, awaited: Awaited, then: Then, step: &mut Step<'_>) {
        self.phase = Phase::Settling(Box::new(Settling { awaited, then }));
        self.settle(step);
    }

    /// Continues if the view shows the awaited state, or if the wait is too long.
    pub(super) fn settle(&mut self, step: &mut Step<'_>) {
        let Phase::Settling(settling) = &mut self.phase else { return };
        if settling.awaited.is_shown(step.view, &self.unit) {
            return self.settled(step);
        }
        if settling.gives_up_at().is_none_or(|until| step.now.steady < until) {
            return;
        }
        match &mut settling.awaited {
            Awaited::Gone { early, .. } => {
                let early = std::mem::take(early);
                self.outbox.put_back(early, step);
                self.hold_up(step);
            }
            Awaited::Reached { .. } => self.settled(step),
            // The record has not changed, so another runner manages the unit.
            Awaited::Moved { .. } | Awaited::Replaced { .. } => {
                self.phase = Phase::Stopped;
                step.command(ExecutorCommand::Revoked);
            }
        }
    }

    /// Continues after the wait.
    pub(super) fn settled(&mut self, step: &mut Step<'_>) {
        let Phase::Settling(settling) = std::mem::replace(&mut self.phase, Phase::Resting { wake_at: None })
        else {
            return;
        };
        match settling.then {
            Then::Decide => self.conclude(step),
            // The view need not show the start: the unit is gone, or the store was replaced.
            Then::RunHook { run, .. } if self.seq(step.view) != Some(run.record.seq) => self.conclude(step),
            Then::RunHook { view, run } => self.run(*run, *view, step),
            Then::RunAction(run) => self.run_action(*run, step),
        }
    }
}
