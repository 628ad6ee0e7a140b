//! A runner died, and the next one tries the hooks that may have ended it.

use periapt_host_api::journal::HookOutcome;
use periapt_uniter::executor::{
    CharmAnswer, ExecutorCommand, ExecutorInput, Returned, SendOutcome, TrialEnd,
};

use super::bench::{Bench, commit, fetches, is_quiet};

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
