//! A frame changed the view.

use periapt_host_api::{ErrorCode, TaskId, action::TaskStatus, view::TaskView};
use periapt_uniter::executor::{ExecutorCommand, ExecutorInput, Returned};

use super::{
    bench::{ACCEPTED, Bench, READY, commit, fetches},
    phase::Phase,
};
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

#[test]
fn a_unit_at_rest_begins_a_hook_that_became_due() {
    let mut world = World::started();
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin]);
    world.configure("config-2");
    bench.view = world.view.clone();
    bench.check(ExecutorInput::DependenciesChanged, &["fetch charm", "wake never"]);
}

#[test]
fn a_request_for_a_charm_that_has_its_answer_is_not_cancelled() {
    let mut bench = Phase::CharmAway.bench();
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &["stop", "wake never", "depend"]);
}

#[test]
fn a_queued_hook_keeps_its_place_whatever_changes() {
    let mut bench = Phase::HookQueued.bench();
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &["depend"]);
    bench.check(ExecutorInput::Turn, &["leave turn", "stop", "depend"]);
}

#[test]
fn a_queued_action_that_is_cancelled_leaves_the_queue() {
    let mut bench = Phase::ActionQueued.bench();
    bench.view.tasks.clear();
    bench.check(ExecutorInput::DependenciesChanged, &["leave turn", "wake at 300 s"]);
}

#[test]
fn a_queued_action_of_another_group_queues_again() {
    let mut bench = Phase::ActionQueued.bench();
    bench.task().group = Some("net".to_owned());
    bench.check(ExecutorInput::DependenciesChanged, &["leave turn", "fetch charm"]);
    bench.check(READY, &["take turn in group net"]);
}

#[test]
fn a_running_action_whose_task_is_gone_is_interrupted() {
    let mut bench = Phase::ActionRuns.bench();
    bench.view.tasks.clear();
    bench.check(ExecutorInput::DependenciesChanged, &["interrupt"]);
}

#[test]
fn a_running_hook_is_left_alone_whatever_changes() {
    let mut bench = Phase::HookRuns.bench();
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &[]);
}

#[test]
fn a_commit_without_an_answer_is_left_alone_whatever_changes() {
    for phase in [Phase::CommitWaits, Phase::CommitSent, Phase::CommitLost] {
        let mut bench = phase.bench();
        bench.leave_model();
        bench.check(ExecutorInput::DependenciesChanged, &[]);
    }
}

#[test]
fn a_unit_that_leaves_while_its_commit_is_awaited_is_stopped() {
    for phase in [Phase::Accepted, Phase::Terminated] {
        let mut bench = phase.bench();
        bench.leave_model();
        let commands = bench.feed(ExecutorInput::DependenciesChanged);
        let texts = bench.texts(&commands);
        assert!(texts.contains(&"stop".to_owned()), "{phase:?}: {texts:?}");
    }
}

#[test]
fn a_deployment_whose_charm_was_replaced_begins_with_the_new_charm() {
    let mut bench = Phase::Replaced.bench();
    let unit = bench.executor.unit().clone();
    let application = bench.view.applications.get_mut(unit.application()).unwrap();
    application.charm.modified_version += 1;
    bench.check(ExecutorInput::DependenciesChanged, &["fetch charm"]);
}

#[test]
fn a_hook_with_storage_whose_unit_is_gone_by_its_start_does_not_run() {
    let mut bench = Bench::with_storage().after([ExecutorInput::Begin, READY, ExecutorInput::Turn, ACCEPTED]);
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &["leave turn", "stop", "depend"]);
}

#[test]
fn an_action_whose_unit_is_gone_by_its_start_does_not_run() {
    let mut bench = Phase::ActionQueued.bench().after([ExecutorInput::Turn, ACCEPTED]);
    bench.leave_model();
    bench.check(ExecutorInput::DependenciesChanged, &["leave turn", "stop", "depend"]);
}
