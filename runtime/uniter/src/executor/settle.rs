//! Waits until the view shows why a commit was answered as it was.

use std::time::Duration;

use periapt_host_api::{UnitName, commit::EarlyItem, record::CharmRef, view::View};

use super::{Executor, ExecutorCommand, Now, Phase, Step};
use crate::HookRun;

/// How long the stream may take to tell why a commit was stale.
const STALE_WITHIN: Duration = Duration::from_secs(15);

/// What the view is to show.
#[derive(Debug, Clone)]
pub(super) enum Awaited {
    /// The record of an accepted commit.
    Reached { seq: u64 },
    /// Another record than this one: a commit that follows it was stale.
    Moved { from: u64, until: Duration },
    /// Another charm than this one, which was replaced while it was brought into place. It is waited for as long as it
    /// takes: the frame that tells of it is on its way, for the stream has never been wrong; should the connection be lost,
    /// it comes with the next one.
    Replaced { charm: Option<CharmRef> },
    /// That the unit is gone: its last commit was refused when it was sent again.
    Gone { early: Vec<EarlyItem>, until: Duration },
}

impl Awaited {
    pub(super) fn moved(from: u64, now: Now) -> Self {
        Self::Moved { from, until: now.steady.saturating_add(STALE_WITHIN) }
    }

    pub(super) fn gone(early: Vec<EarlyItem>, now: Now) -> Self {
        Self::Gone { early, until: now.steady.saturating_add(STALE_WITHIN) }
    }

    fn is_shown(&self, view: &View, name: &UnitName) -> bool {
        let unit = view.units.get(name);
        match self {
            Self::Reached { seq } => unit.is_none_or(|unit| unit.record.seq >= *seq),
            Self::Moved { from, .. } => unit.is_none_or(|unit| unit.record.seq != *from),
            // Coming back to the same archive is another modified version, so that this ends however many changes one
            // frame tells of.
            Self::Replaced { charm } => {
                let application = unit.and_then(|unit| view.applications.get(unit.name.application()));
                application.is_none_or(|application| Some(application.charm) != *charm)
            }
            Self::Gone { .. } => unit.is_none(),
        }
    }
}

/// What follows.
#[derive(Debug, Clone)]
pub(super) enum Then {
    /// The operation is over.
    Look,
    /// The hook that the commit announced, on the view that it was decided on.
    RunHook { view: Box<View>, run: Box<HookRun> },
    /// The action whose beginning it was.
    RunAction(Box<HookRun>),
}

/// An answered commit whose reason is not in the view yet.
#[derive(Debug, Clone)]
pub(super) struct Settling {
    awaited: Awaited,
    then: Then,
}

impl Settling {
    /// Whether something follows that the commit only began.
    pub(super) fn goes_on(&self) -> bool {
        !matches!(self.then, Then::Look)
    }

    pub(super) fn gives_up_at(&self) -> Option<Duration> {
        match self.awaited {
            Awaited::Moved { until, .. } | Awaited::Gone { until, .. } => Some(until),
            Awaited::Reached { .. } | Awaited::Replaced { .. } => None,
        }
    }
}

impl Executor {
    /// Goes on once the view shows something; it may do so already.
    pub(super) fn await_view(&mut self, awaited: Awaited, then: Then, step: &mut Step<'_>) {
        self.phase = Phase::Settling(Box::new(Settling { awaited, then }));
        self.settle(step);
    }

    /// Goes on if the view shows what it is to show, or if that does not come.
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
            // The record is where it was: it is this runner that is not the unit's any more.
            _ => {
                self.phase = Phase::Stopped;
                step.command(ExecutorCommand::Revoked);
            }
        }
    }

    /// Goes on after a commit.
    pub(super) fn settled(&mut self, step: &mut Step<'_>) {
        let Phase::Settling(settling) = std::mem::replace(&mut self.phase, Phase::Resting { wake_at: None })
        else {
            return;
        };
        match settling.then {
            Then::Look => self.conclude(step),
            Then::RunHook { view, run } => self.run(*run, *view, step),
            Then::RunAction(run) => self.run_action(*run, step),
        }
    }
}
