//! A unit whose executor a test drives, input by input.

use std::time::Duration;

use periapt_host_api::{
    Digest, ErrorCode, Incarnation, OperationId, Refusal, Timestamp,
    commit::{EarlyEffect, UnitCommit},
    journal::HookCosts,
    status::AgentStatus,
    view::View,
};
use periapt_uniter::{
    Decision, Jitter,
    executor::{
        CharmAnswer, Executor, ExecutorCommand, ExecutorInput, Now, Options, Returned, Run, RunReport,
        SendOutcome, Wake,
    },
    resolve,
};

use crate::World;

/// A started unit with its view, whose executor the test drives. Early effects are accepted at once.
pub(super) struct Bench {
    pub(super) executor: Executor,
    pub(super) view: View,
    pub(super) timer: Timestamp,
    pub(super) steady: Duration,
    pub(super) wake: Wake,
}

impl Bench {
    pub(super) fn of(world: &World) -> Self {
        let options = Options {
            unit: world.unit.clone(),
            incarnation: Incarnation(3),
            engine: "none".into(),
            last_number: world.me().early_number,
        };
        Self {
            executor: Executor::new(options),
            view: world.view.clone(),
            timer: world.now,
            steady: Duration::ZERO,
            wake: Wake::default(),
        }
    }

    /// Returns a unit for which config-changed is due.
    pub(super) fn configured() -> Self {
        let mut world = World::started();
        world.configure("config-2");
        Self::of(&world)
    }

    pub(super) fn feed(&mut self, input: ExecutorInput) -> Vec<ExecutorCommand> {
        let now = Now { wall: self.timer, timer: self.timer, steady: self.steady };
        let mut commands = self.executor.handle(input, &self.view, now);
        let mut sends_early = false;
        for command in &commands {
            match command {
                ExecutorCommand::WakeAt(wake) => self.wake = *wake,
                ExecutorCommand::SendEarly(_) => sends_early = true,
                _ => {}
            }
        }
        if sends_early {
            commands.extend(self.feed(ExecutorInput::EarlyAnswered(SendOutcome::Accepted)));
        }
        commands
    }

    pub(super) fn pass(&mut self, milliseconds: u64) -> Vec<ExecutorCommand> {
        self.steady += Duration::from_millis(milliseconds);
        self.feed(ExecutorInput::Woken)
    }

    /// Starts the unit and continues until a hook or an action runs.
    pub(super) fn run(&mut self) -> Run {
        let commands = self.feed(ExecutorInput::Begin);
        self.go_on(commands)
    }

    pub(super) fn go_on(&mut self, mut commands: Vec<ExecutorCommand>) -> Run {
        for _ in 0..10 {
            let mut next = None;
            for command in commands {
                match command {
                    ExecutorCommand::FetchCharm(_) => next = Some(ExecutorInput::Charm(CharmAnswer::Ready)),
                    ExecutorCommand::TakeTurn(_) => next = Some(ExecutorInput::Turn),
                    ExecutorCommand::Commit(commit) => {
                        self.show(&commit);
                        next = Some(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
                    }
                    ExecutorCommand::Run(run) => return *run,
                    _ => {}
                }
            }
            commands = self.feed(next.unwrap());
        }
        panic!("nothing runs")
    }

    /// Adds a commit to the view.
    pub(super) fn show(&mut self, commit: &UnitCommit) {
        self.view.revision.0 += 1;
        self.view.units.get_mut(&commit.unit).unwrap().record = commit.record.clone();
    }

    pub(super) fn ended(&mut self, returned: Returned) -> Vec<ExecutorCommand> {
        let report = RunReport {
            costs: HookCosts { fuel: 7, ..HookCosts::default() },
            ..RunReport::of(returned, self.timer)
        };
        self.feed(ExecutorInput::Ended { report: Box::new(report), jitter: Jitter::NONE })
    }

    pub(super) fn refuse(&mut self, code: ErrorCode) -> Vec<ExecutorCommand> {
        self.feed(ExecutorInput::CommitAnswered(SendOutcome::Refused(Refusal::new(code, "not so"))))
    }

    /// Returns the operation of the due run.
    pub(super) fn due(&self) -> OperationId {
        match resolve(&self.view, self.executor.unit(), self.timer) {
            Decision::RunHook(run) => run.operation(),
            other => panic!("{other:?}"),
        }
    }
}

pub(super) fn commit(commands: &[ExecutorCommand]) -> &UnitCommit {
    let commits = |command: &'_ ExecutorCommand| matches!(command, ExecutorCommand::Commit(_));
    assert_eq!(commands.iter().filter(|command| commits(command)).count(), 1, "{commands:?}");
    commands
        .iter()
        .find_map(|command| if let ExecutorCommand::Commit(it) = command { Some(&**it) } else { None })
        .unwrap()
}

pub(super) fn is_quiet(commands: &[ExecutorCommand]) -> bool {
    let quiet = |command: &ExecutorCommand| {
        matches!(
            command,
            ExecutorCommand::WakeAt(_) | ExecutorCommand::Depend(_) | ExecutorCommand::SendEarly(_)
        )
    };
    commands.iter().all(quiet)
}

pub(super) fn fetches(commands: &[ExecutorCommand]) -> Vec<Digest> {
    let fetched = |command: &ExecutorCommand| match command {
        ExecutorCommand::FetchCharm(digest) => Some(*digest),
        _ => None,
    };
    commands.iter().filter_map(fetched).collect()
}

pub(super) fn agent_says(commands: &[ExecutorCommand]) -> Vec<AgentStatus> {
    let noted = commands.iter().flat_map(|command| match command {
        ExecutorCommand::Note(items) => items.as_slice(),
        _ => &[],
    });
    noted
        .filter_map(|item| match &item.effect {
            EarlyEffect::AgentStatus { status, .. } => Some(*status),
            _ => None,
        })
        .collect()
}
