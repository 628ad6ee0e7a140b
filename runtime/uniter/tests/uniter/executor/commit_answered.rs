//! The controller answered a commit, or did not.

use periapt_host_api::{ErrorCode, action::TaskOutcome, event::Event, journal::HookOutcome};
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned, SendOutcome};

use super::{
    bench::{ACCEPTED, Bench, READY, UNREACHABLE, commit, fetches, is_quiet, refused},
    phase::Phase,
};
use crate::World;

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

#[test]
fn a_commit_that_the_view_shows_already_ends_the_operation() {
    let mut bench = Phase::HookRuns.bench();
    let ended = bench.end(Returned::Handled);
    let commands = bench.feed_one(ended);
    bench.show(commit(&commands));
    bench.check(ACCEPTED, &["leave turn", "ended", "wake at 300 s"]);
}

#[test]
fn an_answer_that_is_lost_is_waited_for() {
    Phase::CommitSent.bench().check(UNREACHABLE, &["wake in 50 ms"]);
}

#[test]
fn a_refused_end_of_a_hook_is_committed_as_a_failure_once() {
    let mut bench = Phase::CommitSent.bench();
    bench.check(
        refused(ErrorCode::QuotaExceeded),
        &["note log, error", "commit failed with executing, log, error"],
    );
    bench.check(refused(ErrorCode::QuotaExceeded), &["leave turn", "ended", "wake in 50 ms", "depend"]);
}

#[test]
fn a_refused_end_of_an_action_is_committed_as_a_failure_once() {
    let mut bench = Phase::ActionRuns.bench();
    bench.ended(Returned::Handled);
    let commands = bench.feed_one(refused(ErrorCode::QuotaExceeded));
    let end = commit(&commands).transitions.end_task.clone().unwrap();
    assert_eq!(end.outcome, TaskOutcome::Failed);
    bench.check(refused(ErrorCode::QuotaExceeded), &["leave turn", "ended", "wake in 50 ms", "depend"]);
}

#[test]
fn a_refused_failure_of_a_hook_is_not_committed_again() {
    let mut bench = Phase::HookRuns.bench();
    bench.ended(Returned::Failed { code: 1, message: "broken".to_owned() });
    bench.check(refused(ErrorCode::QuotaExceeded), &["leave turn", "ended", "wake in 50 ms", "depend"]);
}

#[test]
fn a_refused_start_of_an_action_holds_the_unit_up() {
    let mut bench = Phase::ActionQueued.bench().after([ExecutorInput::Turn]);
    bench.check(refused(ErrorCode::QuotaExceeded), &["leave turn", "wake in 200 ms", "depend"]);
}

#[test]
fn a_refused_start_of_a_hook_holds_the_unit_up() {
    let mut bench = Bench::with_storage().after([ExecutorInput::Begin, READY, ExecutorInput::Turn]);
    bench.check(refused(ErrorCode::QuotaExceeded), &["leave turn", "wake in 200 ms", "depend"]);
}

#[test]
fn a_refused_deployment_holds_the_unit_up() {
    let mut world = World::started();
    world.want_charm(2, false);
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin, READY]);
    bench.check(refused(ErrorCode::QuotaExceeded), &["wake in 200 ms", "depend"]);
}

#[test]
fn the_effects_of_a_stale_commit_are_sent_by_themselves() {
    let mut bench = Phase::CommitSent.bench();
    bench.check(refused(ErrorCode::Stale), &["wake in 50 ms"]);
    bench.check_after(50, &["send executing", "wake in 14950 ms"]);
}
