//! The turn of a hook or an action came.

use periapt_uniter::executor::ExecutorInput;

use super::{
    bench::{ACCEPTED, Bench, READY, commit},
    phase::Phase,
};
use crate::World;

#[test]
fn a_hook_is_announced_and_then_runs() {
    let expected = ["started", "note executing", "run config-changed", "wake in 50 ms"];
    Phase::HookQueued.bench().check(ExecutorInput::Turn, &expected);
}

#[test]
fn a_hook_with_storage_runs_once_the_view_shows_its_start() {
    let mut bench = Bench::with_storage().after([ExecutorInput::Begin, READY]);
    let start = bench.feed_one(ExecutorInput::Turn);
    assert_eq!(bench.texts(&start), ["commit start"]);
    bench.check(ACCEPTED, &[]);
    bench.show(commit(&start));
    let expected = ["started", "note executing", "run config-changed", "wake in 50 ms"];
    bench.check(ExecutorInput::DependenciesChanged, &expected);
}

#[test]
fn an_action_runs_once_the_view_shows_its_start() {
    let mut bench = Phase::ActionQueued.bench();
    let start = bench.feed_one(ExecutorInput::Turn);
    assert_eq!(bench.texts(&start), ["commit start"]);
    bench.show(commit(&start));
    bench.check(ACCEPTED, &["started", "note executing", "run backup", "wake in 50 ms"]);
}

#[test]
fn a_turn_serves_the_hook_that_is_due_by_then() {
    let mut world = World::started();
    world.configure("config-2");
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin, READY]);
    world.settle();
    world.reboot();
    bench.view = world.view.clone();
    let expected = ["started", "note executing", "run start", "wake in 50 ms"];
    bench.check(ExecutorInput::Turn, &expected);
}

#[test]
fn a_turn_is_left_if_the_hook_is_not_due_any_more() {
    let mut world = World::started();
    world.configure("config-2");
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin, READY]);
    world.settle();
    bench.view = world.view.clone();
    bench.check(ExecutorInput::Turn, &["leave turn", "wake at 300 s"]);
}

#[test]
fn a_turn_is_left_if_the_hook_needs_more_memory_than_it_asked_for() {
    let mut world = World::started();
    world.configure("config-2");
    let mut bench = Bench::of(&world).after([ExecutorInput::Begin, READY]);
    world.set_option("hook-memory-limit", "1G");
    bench.view = world.view.clone();
    bench.check(ExecutorInput::Turn, &["leave turn", "fetch charm"]);
    bench.check(READY, &["take turn"]);
}

#[test]
fn a_turn_is_left_if_the_unit_is_gone() {
    let mut bench = Phase::HookQueued.bench();
    bench.leave_model();
    bench.check(ExecutorInput::Turn, &["leave turn", "stop", "depend"]);
}
