//! Tests of the executor's commands for single inputs. The laboratory tests whole lives of it.

use std::time::Duration;

use periapt_host_api::{
    Digest, ErrorCode, Incarnation, Refusal, TaskId, Timestamp,
    action::TaskStatus,
    commit::{EarlyEffect, UnitCommit},
    event::Event,
    journal::{HookCosts, HookOutcome},
    status::AgentStatus,
    view::{TaskView, View},
};
use periapt_uniter::{
    Jitter,
    executor::{
        CharmAnswer, Executor, ExecutorCommand, ExecutorInput, Now, Options, Returned, Run, RunReport,
        SendOutcome, TrialEnd, Wake,
    },
};

use crate::World;

/// A started unit with its view, whose executor the test drives. Early effects are accepted at once.
struct Bench {
    executor: Executor,
    view: View,
    timer: Timestamp,
    steady: Duration,
    wake: Wake,
}

impl Bench {
    fn of(world: &World) -> Self {
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
    fn configured() -> Self {
        let mut world = World::started();
        world.configure("config-2");
        Self::of(&world)
    }

    fn feed(&mut self, input: ExecutorInput) -> Vec<ExecutorCommand> {
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

    fn pass(&mut self, milliseconds: u64) -> Vec<ExecutorCommand> {
        self.steady += Duration::from_millis(milliseconds);
        self.feed(ExecutorInput::Woken)
    }

    /// Starts the unit and continues until a hook or an action runs.
    fn run(&mut self) -> Run {
        let commands = self.feed(ExecutorInput::Begin);
        self.go_on(commands)
    }

    fn go_on(&mut self, mut commands: Vec<ExecutorCommand>) -> Run {
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
    fn show(&mut self, commit: &UnitCommit) {
        self.view.revision.0 += 1;
        self.view.units.get_mut(&commit.unit).unwrap().record = commit.record.clone();
    }

    fn ended(&mut self, returned: Returned) -> Vec<ExecutorCommand> {
        let report = RunReport {
            costs: HookCosts { fuel: 7, ..HookCosts::default() },
            ..RunReport::of(returned, self.timer)
        };
        self.feed(ExecutorInput::Ended { report: Box::new(report), jitter: Jitter::NONE })
    }

    fn refuse(&mut self, code: ErrorCode) -> Vec<ExecutorCommand> {
        self.feed(ExecutorInput::CommitAnswered(SendOutcome::Refused(Refusal::new(code, "not so"))))
    }
}

fn commit(commands: &[ExecutorCommand]) -> &UnitCommit {
    let commits = |command: &'_ ExecutorCommand| matches!(command, ExecutorCommand::Commit(_));
    assert_eq!(commands.iter().filter(|command| commits(command)).count(), 1, "{commands:?}");
    commands
        .iter()
        .find_map(|command| if let ExecutorCommand::Commit(it) = command { Some(&**it) } else { None })
        .unwrap()
}

fn is_quiet(commands: &[ExecutorCommand]) -> bool {
    let quiet = |command: &ExecutorCommand| {
        matches!(
            command,
            ExecutorCommand::WakeAt(_) | ExecutorCommand::Depend(_) | ExecutorCommand::SendEarly(_)
        )
    };
    commands.iter().all(quiet)
}

fn fetches(commands: &[ExecutorCommand]) -> Vec<Digest> {
    let fetched = |command: &ExecutorCommand| match command {
        ExecutorCommand::FetchCharm(digest) => Some(*digest),
        _ => None,
    };
    commands.iter().filter_map(fetched).collect()
}

fn agent_says(commands: &[ExecutorCommand]) -> Vec<AgentStatus> {
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

#[test]
fn the_next_hook_begins_when_the_view_shows_the_commit_of_the_last_one() {
    let mut bench = Bench::configured();
    assert_eq!(bench.run().run.event, Event::ConfigChanged);
    let commands = bench.ended(Returned::Handled);
    let commit = commit(&commands).clone();
    assert_eq!(commit.journal.as_ref().unwrap().outcome, HookOutcome::Handled);
    assert!(is_quiet(&bench.feed(ExecutorInput::DependenciesChanged)), "no answer yet");
    assert!(
        is_quiet(&bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted))),
        "the view has it not yet"
    );
    bench.show(&commit);
    let commands = bench.feed(ExecutorInput::DependenciesChanged);
    assert!(matches!(commands[..2], [ExecutorCommand::LeaveTurn, ExecutorCommand::Ended(_)]), "{commands:?}");
    assert!(bench.executor.rests_until().is_some());
}

#[test]
fn c3_a_refused_hook_is_a_failure_and_a_refused_failure_waits_longer_each_time() {
    let mut bench = Bench::configured();
    let mut commands = bench.feed(ExecutorInput::Begin);
    for wait in [200, 400, 800] {
        bench.go_on(commands);
        bench.ended(Returned::Handled);
        let again = bench.refuse(ErrorCode::QuotaExceeded);
        let again = commit(&again).journal.clone().unwrap();
        assert!(matches!(again.outcome, HookOutcome::Failed { .. }));
        let held_up = bench.refuse(ErrorCode::QuotaExceeded);
        assert!(
            matches!(held_up[..2], [ExecutorCommand::LeaveTurn, ExecutorCommand::Ended(_)]),
            "{held_up:?}"
        );
        assert!(fetches(&bench.pass(wait - 1)).is_empty());
        commands = bench.pass(1);
        assert_eq!(fetches(&commands).len(), 1, "after {wait} ms");
    }
    // A success resets the waits.
    bench.go_on(commands);
    let commands = bench.ended(Returned::Handled);
    bench.show(&commit(&commands).clone());
    bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert!(bench.executor.rests_until().is_some());
}

#[test]
fn a_refused_unit_looks_again_as_soon_as_anything_changes() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.refuse(ErrorCode::QuotaExceeded);
    bench.refuse(ErrorCode::QuotaExceeded);
    assert_eq!(fetches(&bench.feed(ExecutorInput::DependenciesChanged)).len(), 1);
}

#[test]
fn what_has_no_answer_is_sent_again_with_waits_that_double() {
    let mut bench = Bench::configured();
    bench.run();
    let first = bench.ended(Returned::Handled);
    for wait in [50, 100, 200, 400, 800, 1_600, 2_000, 2_000] {
        assert!(is_quiet(&bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Unreachable))));
        assert!(is_quiet(&bench.pass(wait - 1)));
        assert_eq!(commit(&bench.pass(1)), commit(&first), "after {wait} ms");
    }
}

#[test]
fn a_stale_commit_is_dropped_when_the_view_shows_another_record() {
    let mut bench = Bench::configured();
    bench.run();
    let mut other = commit(&bench.ended(Returned::Handled)).clone();
    assert!(is_quiet(&bench.refuse(ErrorCode::Stale)));
    assert!(is_quiet(&bench.pass(14_999)));
    other.record.seq += 4;
    bench.show(&other);
    bench.feed(ExecutorInput::DependenciesChanged);
    assert!(bench.executor.rests_until().is_some());
}

#[test]
fn a_runner_whose_commits_stay_stale_is_not_the_units_any_more() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.refuse(ErrorCode::Stale);
    assert!(is_quiet(&bench.pass(14_999)));
    assert!(bench.pass(1).iter().any(|command| matches!(command, ExecutorCommand::Revoked)));
}

#[test]
fn a_view_of_another_store_ends_the_wait_for_a_commit() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert_eq!(
        fetches(&bench.feed(ExecutorInput::StoreReplaced)).len(),
        1,
        "config-changed is due in that one"
    );
}

#[test]
fn what_hooks_used_that_had_nothing_to_commit_goes_with_the_next_commit() {
    let mut world = World::started();
    world.update_status_every("10s");
    world.settle();
    let mut bench = Bench::of(&world);
    assert!(fetches(&bench.feed(ExecutorInput::Begin)).is_empty());
    for _ in 0..2 {
        bench.timer = bench.wake.at.unwrap();
        let commands = bench.feed(ExecutorInput::Woken);
        assert_eq!(bench.go_on(commands).run.event, Event::UpdateStatus);
        let commands = bench.ended(Returned::Handled);
        assert!(
            !commands.iter().any(|command| matches!(command, ExecutorCommand::Commit(_))),
            "{commands:?}"
        );
    }
    world.configure("config-2");
    bench.view = world.view.clone();
    let commands = bench.feed(ExecutorInput::DependenciesChanged);
    bench.go_on(commands);
    let commands = bench.ended(Returned::Handled);
    let used = commit(&commands).uncommitted_usage;
    assert_eq!((used.hooks, used.fuel), (2, 14));
    let shown = commit(&commands).clone();
    bench.show(&shown);
    bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert_eq!(shown.uncommitted_usage.failed, 0);
}

#[test]
fn a_charm_that_stays_away_is_told_of_after_three_seconds_once_and_taken_back() {
    let mut bench = Bench::configured();
    bench.feed(ExecutorInput::Begin);
    let mut waited = 0;
    let mut told = Vec::new();
    while waited < 10_000 {
        let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Away("it is damaged".to_owned())));
        if !agent_says(&commands).is_empty() {
            told.push(waited);
        }
        loop {
            let wait = u64::try_from((bench.wake.after.unwrap() - bench.steady).as_millis()).unwrap();
            waited += wait;
            if fetches(&bench.pass(wait)).len() == 1 {
                break;
            }
        }
    }
    assert!(matches!(told[..], [at] if (3_000..5_100).contains(&at)), "{told:?}");
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Ready));
    assert_eq!(agent_says(&commands), [AgentStatus::Idle], "as it was before");
}

#[test]
fn a_charm_that_is_not_wanted_any_more_is_forgotten() {
    let mut world = World::started();
    world.want_charm(2, false);
    let mut bench = Bench::of(&world);
    let second = fetches(&bench.feed(ExecutorInput::Begin));
    world.want_charm(1, false);
    bench.view = world.view.clone();
    let commands = bench.feed(ExecutorInput::DependenciesChanged);
    assert!(matches!(commands[0], ExecutorCommand::ForgetCharm), "{commands:?}");
    assert_ne!(fetches(&commands), second);
}

#[test]
fn an_action_that_is_cancelled_is_interrupted_once() {
    let world = World::started();
    let mut bench = Bench::of(&world);
    let task = TaskView {
        id: TaskId(1),
        unit: world.unit.clone(),
        action: "backup".to_owned(),
        parameters: Default::default(),
        group: None,
        status: TaskStatus::Pending,
    };
    bench.view.tasks.insert(task.id, task.clone());
    let run = bench.run();
    assert_eq!(run.run.event.task(), Some(task.id));
    bench.view.tasks.insert(task.id, TaskView { status: TaskStatus::Aborting, ..task });
    assert!(matches!(bench.feed(ExecutorInput::DependenciesChanged)[..], [ExecutorCommand::Interrupt]));
    assert!(bench.feed(ExecutorInput::DependenciesChanged).is_empty());
    let commands = bench.ended(Returned::Stopped);
    let end = commit(&commands).transitions.end_task.clone().unwrap();
    assert_eq!(end.message, "action cancelled");
}

#[test]
fn a_suspect_runs_without_a_turn_and_its_unit_begins_afterwards() {
    let mut bench = Bench::configured();
    let operation = bench.due();
    let commands = bench.feed(ExecutorInput::Try { operation, deaths: 2 });
    assert_eq!(fetches(&commands).len(), 1);
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Ready));
    assert!(commands.iter().any(|command| matches!(command, ExecutorCommand::Run(_))), "{commands:?}");
    let commands = bench.ended(Returned::Handled);
    bench.show(&commit(&commands).clone());
    let commands = bench.feed(ExecutorInput::CommitAnswered(SendOutcome::Accepted));
    assert!(commands.iter().any(|command| matches!(command, ExecutorCommand::Tried(TrialEnd::Cleared))));
    assert!(is_quiet(&bench.feed(ExecutorInput::DependenciesChanged)), "it has not begun");
    bench.feed(ExecutorInput::Begin);
    assert!(bench.executor.rests_until().is_some());
}

#[test]
fn a_hook_under_which_three_runners_died_fails_without_being_run() {
    let mut bench = Bench::configured();
    let operation = bench.due();
    let commands = bench.feed(ExecutorInput::Try { operation, deaths: 3 });
    let journal = commit(&commands).journal.clone().unwrap();
    assert_eq!(journal.outcome, HookOutcome::Failed { message: "the sandbox crashed".to_owned() });
    assert!(!commands.iter().any(|command| matches!(command, ExecutorCommand::Run(_))));
}

#[test]
fn a_suspect_whose_charm_is_away_is_left_and_runs_alone_later() {
    let mut bench = Bench::configured();
    let operation = bench.due();
    bench.feed(ExecutorInput::Try { operation, deaths: 1 });
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Away("it is damaged".to_owned())));
    assert!(matches!(commands[0], ExecutorCommand::Tried(TrialEnd::Left)));
    bench.feed(ExecutorInput::Begin);
    let commands = bench.feed(ExecutorInput::Charm(CharmAnswer::Ready));
    let turn = commands.iter().find_map(|command| match command {
        ExecutorCommand::TakeTurn(turn) => Some(turn.clone()),
        _ => None,
    });
    assert_eq!(turn.unwrap().memory, u64::MAX);
}

impl Bench {
    /// Returns the operation of the due run.
    fn due(&self) -> periapt_host_api::OperationId {
        match periapt_uniter::resolve(&self.view, self.executor.unit(), self.timer) {
            periapt_uniter::Decision::RunHook(run) => run.operation(),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_unit_that_is_gone_is_stopped_once_what_it_said_was_sent() {
    let mut bench = Bench::configured();
    bench.run();
    bench.ended(Returned::Handled);
    bench.refuse(ErrorCode::PermissionDenied);
    let gone = bench.executor.unit().clone();
    bench.view.units.remove(&gone);
    bench.refuse(ErrorCode::PermissionDenied);
    let commands = bench.feed(ExecutorInput::DependenciesChanged);
    let place = |wanted: fn(&ExecutorCommand) -> bool| commands.iter().position(wanted).unwrap();
    let sent = place(|command| matches!(command, ExecutorCommand::SendEarly(_)));
    assert!(sent < place(|command| matches!(command, ExecutorCommand::Stop)), "{commands:?}");
}
