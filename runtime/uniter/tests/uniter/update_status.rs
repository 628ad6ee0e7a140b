//! Tests of the update-status timer (`docs/hook-model.md` 1.11, U-20).

use periapt_host_api::event::Event;
use periapt_uniter::{Decision, HookEnd, Jitter, hook_ended};

use crate::{World, check};

fn due_in(world: &World) -> Option<i64> {
    world.record().update_status_due.map(|due| due.as_second() - world.now.as_second())
}

#[test]
fn d06_the_timer_fires_each_interval_and_never_shows_as_executing() {
    let mut world = World::started();
    world.statuses.clear();
    for _ in 0..3 {
        assert_eq!(world.decide(), Decision::Idle { wake_at: world.record().update_status_due });
        world.advance(299);
        check(&mut world, &[]);
        world.advance(1);
        check(&mut world, &["update-status"]);
    }
    assert!(world.statuses.is_empty(), "{:?}", world.statuses);
}

#[test]
fn each_period_is_moved_by_a_fifth_at_most() {
    let mut world = World::started();
    world.advance(300);
    let run = world.due();
    for (jitter, seconds) in [(Jitter::LEAST, 240), (Jitter::NONE, 300), (Jitter::MOST, 360)] {
        let progress = hook_ended(&run, HookEnd::Handled { status_set: false }, world.now, jitter);
        let due = progress.record.update_status_due.unwrap();
        assert_eq!(due.as_second() - world.now.as_second(), seconds);
    }
}

#[test]
fn u20_d07_a_hook_that_ran_after_the_tick_counts_as_it() {
    let mut world = World::started();
    world.advance(300);
    world.configure("other");
    check(&mut world, &["config-changed"]);
    assert_eq!(due_in(&world), Some(300));
}

#[test]
fn d07_a_tick_that_comes_while_a_hook_runs_is_one_update_status_afterwards() {
    let mut world = World::started();
    world.configure("other");
    let run = world.due();
    world.advance(3000);
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["update-status"]);
    check(&mut world, &[]);
}

#[test]
fn other_hooks_do_not_move_the_timer() {
    let mut world = World::started();
    world.advance(100);
    world.configure("other");
    check(&mut world, &["config-changed"]);
    assert_eq!(due_in(&world), Some(200));
}

#[test]
fn an_interval_of_zero_is_off_and_can_be_turned_on_again() {
    let mut world = World::started();
    world.update_status_every("0");
    assert_eq!(check(&mut world, &[]), Decision::Idle { wake_at: None });
    world.advance(10_000);
    check(&mut world, &[]);
    world.update_status_every("100s");
    check(&mut world, &[]);
    assert!((80..=120).contains(&due_in(&world).unwrap()));
    world.advance(120);
    check(&mut world, &["update-status"]);
}

#[test]
fn a_shorter_interval_sets_the_timer_anew() {
    let mut world = World::started();
    world.update_status_every("60s");
    check(&mut world, &[]);
    assert!((48..=72).contains(&due_in(&world).unwrap()));
}

#[test]
fn a_unit_that_has_not_started_has_no_timer() {
    let mut world = World::new();
    world.failing.insert("start".to_owned());
    world.without_retries();
    world.settle();
    assert_eq!(world.record().update_status_due, None);
}

#[test]
fn a_start_that_was_passed_over_arms_the_timer_all_the_same() {
    let mut world = World::new();
    world.failing.insert("start".to_owned());
    world.settle();
    world.resolved(periapt_host_api::command::ResolveMode::NoRetry);
    world.settle();
    assert!(world.record().update_status_due.is_some());
}

#[test]
fn only_a_silent_update_status_need_not_be_written() {
    let mut world = World::started();
    world.advance(300);
    let run = world.due();
    assert_eq!(run.event, Event::UpdateStatus);
    let ended = |end| hook_ended(&run, end, world.now, Jitter::NONE).only_rearms(&run);
    assert!(ended(HookEnd::Handled { status_set: false }));
    assert!(ended(HookEnd::Unhandled { status_set: false }));
    assert!(!ended(HookEnd::Handled { status_set: true }), "that the charm set a status is to be remembered");
    assert!(!ended(HookEnd::Failed { message: String::new(), status_set: false }));
    world.configure("other");
    let other = world.due();
    let progress = hook_ended(&other, HookEnd::Handled { status_set: false }, world.now, Jitter::NONE);
    assert!(!progress.only_rearms(&other));
}
