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

/// A started unit with its view, whose executor the test drives.
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

    /// Feeds one input, and returns its commands.
    pub(super) fn feed_one(&mut self, input: ExecutorInput) -> Vec<ExecutorCommand> {
        let now = Now { wall: self.timer, timer: self.timer, steady: self.steady };
        let commands = self.executor.handle(input, &self.view, now);
        for command in &commands {
            if let ExecutorCommand::WakeAt(wake) = command {
                self.wake = *wake;
            }
        }
        commands
    }

    /// Feeds one input, accepts the early effects that it sends, and returns all commands.
    pub(super) fn feed(&mut self, input: ExecutorInput) -> Vec<ExecutorCommand> {
        let mut commands = self.feed_one(input);
        if commands.iter().any(|command| matches!(command, ExecutorCommand::SendEarly(_))) {
            commands.extend(self.feed(ExecutorInput::EarlyAnswered(SendOutcome::Accepted)));
        }
        commands
    }

    /// Feeds one input, and compares its commands with the expected ones.
    #[track_caller]
    pub(super) fn check(&mut self, input: ExecutorInput, expected: &[&str]) {
        let commands = self.feed_one(input);
        assert_eq!(self.texts(&commands), expected);
    }

    /// Lets the short waits pass, feeds the wake-up, and compares its commands with the expected ones.
    #[track_caller]
    pub(super) fn check_after(&mut self, milliseconds: u64, expected: &[&str]) {
        self.steady += Duration::from_millis(milliseconds);
        self.check(ExecutorInput::Woken, expected);
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
        let ended = self.end(returned);
        self.feed(ended)
    }

    /// Returns the input of a run's end.
    pub(super) fn end(&self, returned: Returned) -> ExecutorInput {
        let report = RunReport {
            costs: HookCosts { fuel: 7, ..HookCosts::default() },
            ..RunReport::of(returned, self.timer)
        };
        ExecutorInput::Ended { report: Box::new(report), jitter: Jitter::NONE }
    }

    pub(super) fn refuse(&mut self, code: ErrorCode) -> Vec<ExecutorCommand> {
        self.feed(refused(code))
    }

    /// Returns the operation that starts from the unit's record, or the first one if the unit is gone.
    pub(super) fn operation(&self) -> OperationId {
        let unit = self.view.units.get(self.executor.unit());
        OperationId(unit.map_or(1, |unit| unit.record.seq))
    }

    /// Returns the operation of the due run.
    pub(super) fn due(&self) -> OperationId {
        match resolve(&self.view, self.executor.unit(), self.timer) {
            Decision::RunHook(run) => run.operation(),
            other => panic!("{other:?}"),
        }
    }
}

/// The controller carried out a commit.
pub(super) const ACCEPTED: ExecutorInput = ExecutorInput::CommitAnswered(SendOutcome::Accepted);

/// A commit has no answer.
pub(super) const UNREACHABLE: ExecutorInput = ExecutorInput::CommitAnswered(SendOutcome::Unreachable);

/// A charm is ready.
pub(super) const READY: ExecutorInput = ExecutorInput::Charm(CharmAnswer::Ready);

/// Returns the refusal of a commit.
pub(super) fn refused(code: ErrorCode) -> ExecutorInput {
    ExecutorInput::CommitAnswered(SendOutcome::Refused(Refusal::new(code, "not so")))
}

/// Returns the answer that a charm is not available.
pub(super) fn away() -> ExecutorInput {
    ExecutorInput::Charm(CharmAnswer::Away("it is damaged".to_owned()))
}

/// Returns the answer that a charm is invalid.
pub(super) fn unusable() -> ExecutorInput {
    ExecutorInput::Charm(CharmAnswer::Unusable { message: "no component".to_owned(), jitter: Jitter::NONE })
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
