//! A hook or an action ended.

use periapt_host_api::{action::TaskOutcome, event::Event};
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned, SendOutcome};

use super::{
    bench::{Bench, commit, fetches},
    phase::Phase,
};
use crate::World;

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
fn the_end_of_a_hook_is_committed_with_all_that_was_said() {
    let ends = [
        (Returned::Handled, vec!["commit handled with executing", "wake never"]),
        (Returned::Unhandled, vec!["commit unhandled with executing", "wake never"]),
        (
            Returned::Failed { code: 1, message: "broken".to_owned() },
            vec!["note log, error", "commit failed with executing, log, error", "wake never"],
        ),
    ];
    for (returned, expected) in ends {
        let mut bench = Phase::HookRuns.bench();
        let ended = bench.end(returned);
        bench.check(ended, &expected);
    }
}

#[test]
fn the_end_of_an_action_is_committed_as_the_end_of_its_task() {
    let failed = Returned::Failed { code: 3, message: "broken".to_owned() };
    let ends = [
        (Phase::ActionRuns, Returned::Handled, TaskOutcome::Completed),
        (Phase::ActionRuns, failed, TaskOutcome::Failed),
        (Phase::ActionStops, Returned::Stopped, TaskOutcome::Aborted),
    ];
    for (phase, returned, outcome) in ends {
        let mut bench = phase.bench();
        let ended = bench.end(returned);
        let commands = bench.feed_one(ended);
        assert_eq!(commit(&commands).transitions.end_task.as_ref().unwrap().outcome, outcome);
    }
}

#[test]
fn the_end_of_a_run_waits_for_the_effects_before_it() {
    let mut bench = Phase::HookRuns.bench();
    bench.check_after(50, &["send executing", "wake never"]);
    let ended = bench.end(Returned::Handled);
    bench.check(ended, &[]);
}
