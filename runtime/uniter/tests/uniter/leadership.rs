//! Leadership as the uniter sees it (`hook-model.md` 1.5, 1.7 rule 8).

use periapt_host_api::{command::ResolveMode, event::Event};
use periapt_uniter::HookEnd;

use crate::{World, check};

#[test]
fn k04_an_idle_unit_that_becomes_leader_is_told_once() {
    let mut world = World::started();
    world.lead_by("a/1");
    check(&mut world, &["leader-settings-changed"]);
    world.lead_by("a/0");
    check(&mut world, &["leader-elected"]);
    check(&mut world, &[]);
}

#[test]
fn d_7_a_loser_learns_of_it_by_leader_settings_changed_even_if_they_did_not_change() {
    let mut world = World::started();
    assert!(world.record().leader);
    world.lead_by("a/1");
    check(&mut world, &["leader-settings-changed"]);
    assert!(!world.record().leader);
    check(&mut world, &[]);
}

#[test]
fn k05_leadership_lost_before_its_hook_ran_is_not_told() {
    let mut world = World::started();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    world.lead_by("a/0");
    world.step();
    assert_eq!(world.due().event, Event::LeaderElected);
    world.lead_by("a/1");
    check(&mut world, &["leader-elected skipped", "leader-settings-changed"]);
}

#[test]
fn k05_a_failed_leader_elected_is_not_tried_again_without_leadership() {
    let mut world = World::new();
    world.failing.insert("leader-elected".to_owned());
    check(&mut world, &["deploy 1", "install", "leader-elected FAILED"]);
    world.lead_by("a/1");
    world.advance(5);
    check(&mut world, &["leader-elected skipped", "leader-settings-changed", "config-changed", "start"]);
}

#[test]
fn k07_a_dying_leader_gives_up_leadership_and_hears_nothing_of_it() {
    let mut world = World::started();
    world.die();
    world.step();
    assert!(!world.record().leader);
    world.application().leader_settings_version = 3;
    check(&mut world, &["stop", "remove"]);
}

#[test]
fn resigning_does_not_wait_for_a_failed_hook() {
    let mut world = World::started();
    world.model_config().automatically_retry_hooks = false;
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.lead_by("a/1");
    check(&mut world, &[]);
    assert!(!world.record().leader);
    world.resolved(ResolveMode::NoRetry);
    check(&mut world, &["config-changed skipped", "leader-settings-changed"]);
}

#[test]
fn accepting_waits_for_a_failed_hook() {
    let mut world = World::started();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.lead_by("a/0");
    check(&mut world, &[]);
    world.failing.clear();
    world.advance(5);
    check(&mut world, &["config-changed", "leader-elected"]);
}

#[test]
fn a_leader_is_not_told_of_its_own_settings() {
    let mut world = World::started();
    world.application().leader_settings_version = 4;
    check(&mut world, &[]);
}

#[test]
fn changed_leader_settings_are_one_hook_that_says_what_it_merged() {
    let mut world = World::started();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    world.application().leader_settings_version = 3;
    let run = world.due();
    assert_eq!(run.coalesced, ["3 changes of the leader settings"]);
    world.application().leader_settings_version = 4;
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["leader-settings-changed"]);
    check(&mut world, &[]);
}
