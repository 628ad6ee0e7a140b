//! A hook or an action ended.

use periapt_host_api::event::Event;
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned, SendOutcome};

use super::bench::{Bench, commit, fetches};
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
