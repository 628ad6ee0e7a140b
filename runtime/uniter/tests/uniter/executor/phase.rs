//! The phases of an executor, each reached by inputs alone.

use periapt_host_api::{ErrorCode, TaskId, action::TaskStatus, status::AgentStatus, view::TaskView};
use periapt_uniter::{
    Decision,
    executor::{ExecutorInput, Returned},
};

use super::bench::{ACCEPTED, Bench, READY, UNREACHABLE, away, commit, refused};
use crate::World;

/// A phase of a unit's executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The unit has not started.
    New,
    /// No work is due.
    Resting,
    /// A failed hook waits for its retry.
    Retrying,
    /// The request for a hook's charm has no answer.
    CharmAsked,
    /// The charm is away, and is requested again later.
    CharmAway,
    /// The request for the charm of a suspect on trial has no answer.
    TrialAsked,
    /// A hook waits for its turn.
    HookQueued,
    /// An action waits for the turn of its group.
    ActionQueued,
    /// A hook runs.
    HookRuns,
    /// An action runs.
    ActionRuns,
    /// An action was told to stop.
    ActionStops,
    /// A commit waits for the answer to early effects.
    CommitWaits,
    /// A commit was sent.
    CommitSent,
    /// A commit has no answer, and is sent again later.
    CommitLost,
    /// A commit was accepted, and the view does not show its record.
    Accepted,
    /// A commit was stale, and the view shows the record from which it started.
    Stale,
    /// The charm of a deployment was replaced, and the view shows the old one.
    Replaced,
    /// The repeat of a unit's last commit was refused, and the view shows the unit.
    Terminated,
    /// A commit was refused.
    Refused,
    /// The unit is gone, and its last early effects have no answer.
    Stopping,
    /// The unit is not managed any more.
    Stopped,
}

impl Phase {
    pub(super) const ALL: [Self; 21] = [
        Self::New,
        Self::Resting,
        Self::Retrying,
        Self::CharmAsked,
        Self::CharmAway,
        Self::TrialAsked,
        Self::HookQueued,
        Self::ActionQueued,
        Self::HookRuns,
        Self::ActionRuns,
        Self::ActionStops,
        Self::CommitWaits,
        Self::CommitSent,
        Self::CommitLost,
        Self::Accepted,
        Self::Stale,
        Self::Replaced,
        Self::Terminated,
        Self::Refused,
        Self::Stopping,
        Self::Stopped,
    ];

    /// Creates a unit in this phase.
    pub(super) fn bench(self) -> Bench {
        match self {
            Self::New => Bench::configured(),
            Self::Resting => Bench::of(&World::started()).after([ExecutorInput::Begin]),
            Self::Retrying => {
                let mut world = World::started();
                world.failing.insert("config-changed".to_owned());
                world.configure("config-2");
                assert!(matches!(world.settle(), Decision::Wait { wake_at: Some(_) }));
                Bench::of(&world).after([ExecutorInput::Begin])
            }
            Self::CharmAsked => Self::New.after([ExecutorInput::Begin]),
            Self::CharmAway => Self::CharmAsked.after([away()]),
            Self::TrialAsked => {
                let bench = Bench::configured();
                let operation = bench.due();
                bench.after([ExecutorInput::Try { operation, deaths: 1 }])
            }
            Self::HookQueued => Self::CharmAsked.after([READY]),
            Self::ActionQueued => Bench::with_task().after([ExecutorInput::Begin, READY]),
            Self::HookRuns => Self::HookQueued.after([ExecutorInput::Turn]),
            Self::ActionRuns => {
                let mut bench = Self::ActionQueued.bench();
                let begins = bench.feed_one(ExecutorInput::Turn);
                bench.show(commit(&begins));
                bench.after([ACCEPTED])
            }
            Self::ActionStops => {
                let mut bench = Self::ActionRuns.bench();
                bench.abort();
                bench.after([ExecutorInput::DependenciesChanged])
            }
            Self::CommitWaits => {
                let mut bench = Self::HookRuns.bench();
                bench.check_after(50, &["send executing", "wake never"]);
                bench.after_end()
            }
            Self::CommitSent => Self::HookRuns.bench().after_end(),
            Self::CommitLost => Self::CommitSent.after([UNREACHABLE]),
            Self::Accepted => Self::CommitSent.after([ACCEPTED]),
            Self::Stale => Self::CommitSent.after([refused(ErrorCode::Stale)]),
            Self::Replaced => {
                let mut world = World::started();
                world.want_charm(2, false);
                let inputs = [ExecutorInput::Begin, READY, refused(ErrorCode::CharmReplaced)];
                Bench::of(&world).after(inputs)
            }
            Self::Terminated => {
                let mut world = World::started();
                world.die();
                let ends = |world: &World| match world.decide() {
                    Decision::Commit(progress) => progress.transitions.terminate,
                    _ => false,
                };
                world.step_until(ends);
                let mut bench = Bench::of(&world).after([ExecutorInput::Begin, UNREACHABLE]);
                bench.pass(50);
                bench.after([refused(ErrorCode::PermissionDenied)])
            }
            Self::Refused => {
                let refuses = || refused(ErrorCode::QuotaExceeded);
                Self::CommitSent.after([refuses(), refuses()])
            }
            Self::Stopping => {
                let mut bench = Self::Refused.bench();
                bench.leave_model();
                bench.after([ExecutorInput::DependenciesChanged])
            }
            Self::Stopped => {
                let mut bench = Self::Resting.bench();
                bench.leave_model();
                bench.after([ExecutorInput::DependenciesChanged])
            }
        }
    }

    fn after(self, inputs: impl IntoIterator<Item = ExecutorInput>) -> Bench {
        self.bench().after(inputs)
    }
}

impl Bench {
    /// Returns a unit with a pending action in the group `disk`.
    pub(super) fn with_task() -> Self {
        let mut bench = Self::of(&World::started());
        let task = TaskView {
            id: TaskId(1),
            unit: bench.executor.unit().clone(),
            action: "backup".to_owned(),
            parameters: Default::default(),
            group: Some("disk".to_owned()),
            status: TaskStatus::Pending,
        };
        bench.view.tasks.insert(task.id, task);
        bench
    }

    /// Returns a unit with storage for which config-changed is due.
    pub(super) fn with_storage() -> Self {
        let mut world = World::declaring("storage:\n  data: {type: filesystem, location: /data}\n");
        world.settle();
        world.configure("config-2");
        Self::of(&world)
    }

    /// Returns the unit's action in the view.
    pub(super) fn task(&mut self) -> &mut TaskView {
        self.view.tasks.get_mut(&TaskId(1)).unwrap()
    }

    /// Cancels the unit's running action.
    pub(super) fn abort(&mut self) {
        self.task().status = TaskStatus::Aborting;
    }

    /// Changes the status of the unit's agent in the view.
    pub(super) fn agent_status(&mut self, status: AgentStatus) {
        let unit = self.executor.unit().clone();
        self.view.units.get_mut(&unit).unwrap().agent_status.status = status;
    }

    /// Removes the unit from the view.
    pub(super) fn leave_model(&mut self) {
        let unit = self.executor.unit().clone();
        self.view.units.remove(&unit);
    }

    /// Feeds inputs one by one.
    pub(super) fn after(mut self, inputs: impl IntoIterator<Item = ExecutorInput>) -> Self {
        for input in inputs {
            self.feed_one(input);
        }
        self
    }

    fn after_end(self) -> Self {
        let ended = self.end(Returned::Handled);
        self.after([ended])
    }
}
