//! A runner died, and the next one tries the hooks that may have ended it.

use periapt_host_api::{ErrorCode, OperationId, journal::HookOutcome};
use periapt_uniter::executor::{
    CharmAnswer, ExecutorCommand, ExecutorInput, Returned, SendOutcome, TrialEnd,
};

use super::{
    bench::{Bench, READY, commit, fetches, is_quiet, refused, unusable},
    phase::Phase,
};

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

#[test]
fn a_suspect_that_is_not_due_any_more_is_cleared() {
    let mut bench = Bench::configured();
    let due = bench.due();
    let another = OperationId(due.0 + 1);
    bench.check(ExecutorInput::Try { operation: another, deaths: 1 }, &["tried: Cleared"]);
    bench.check(ExecutorInput::Begin, &["fetch charm", "depend"]);
}

#[test]
fn a_suspect_that_a_frame_makes_undue_is_cleared() {
    let mut bench = Phase::TrialAsked.bench();
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &["forget charm", "tried: Cleared"]);
    bench.check(ExecutorInput::Begin, &["stop", "depend"]);
}

/// The view may be newer than the last frame that the executor was told of. The runner's other units wait for the trial.
#[test]
fn a_suspect_that_is_not_due_any_more_when_its_charm_comes_is_cleared() {
    let mut bench = Phase::TrialAsked.bench();
    bench.leave_model();
    bench.check(READY, &["tried: Cleared"]);
    bench.check(ExecutorInput::Begin, &["stop", "depend"]);
}

#[test]
fn a_suspect_whose_charm_is_invalid_runs_so_that_its_failure_shows_the_error() {
    let expected = ["started", "note executing", "run config-changed", "wake in 50 ms"];
    Phase::TrialAsked.bench().check(unusable(), &expected);
}

#[test]
fn a_trial_ends_with_the_refusal_of_the_hooks_failure() {
    let mut bench = Phase::TrialAsked.bench().after([READY]);
    let ended = bench.end(Returned::Handled);
    bench.check(ended, &["commit handled with executing", "wake never"]);
    bench.check(
        refused(ErrorCode::QuotaExceeded),
        &["note log, error", "commit failed with executing, log, error"],
    );
    bench.check(refused(ErrorCode::QuotaExceeded), &["ended", "tried: Cleared", "wake in 50 ms"]);
}

#[test]
fn a_hook_that_killed_three_runners_needs_neither_charm_nor_turn() {
    let mut bench = Bench::configured();
    let operation = bench.due();
    let expected = ["note log, error", "commit failed with log, error"];
    bench.check(ExecutorInput::Try { operation, deaths: 3 }, &expected);
    bench.check(refused(ErrorCode::QuotaExceeded), &["ended", "tried: Cleared", "wake in 50 ms"]);
}
