//! A frame changed the view.

use periapt_host_api::{ErrorCode, TaskId, action::TaskStatus, view::TaskView};
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned};

use super::bench::{Bench, commit, fetches};
use crate::World;

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
