//! Tests of leadership (`docs/hook-model.md` 1.5, 1.7 rule 8).

use periapt_host_api::{command::ResolveMode, event::Event};
use periapt_uniter::{Decision, HookEnd};

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
    world.lead_by("a/1");
    world.write_leader_settings();
    check(&mut world, &["stop", "remove"]);
}

#[test]
fn resigning_does_not_wait_for_a_failed_hook() {
    let mut world = World::started();
    world.without_retries();
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
    world.without_retries();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    check(&mut world, &["config-changed FAILED"]);
    world.lead_by("a/0");
    check(&mut world, &[]);
    world.failing.clear();
    world.resolved(ResolveMode::Retry);
    check(&mut world, &["config-changed", "leader-elected"]);
}

#[test]
fn a_leader_is_not_told_of_its_own_settings() {
    let mut world = World::started();
    world.write_leader_settings();
    check(&mut world, &[]);
}

#[test]
fn changed_leader_settings_are_one_hook_that_says_what_it_merged() {
    let mut world = World::started();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    for _ in 0..3 {
        world.write_leader_settings();
    }
    let run = world.due();
    assert_eq!(run.coalesced, ["3 changes of the leader settings"]);
    world.write_leader_settings();
    world.end(&run, HookEnd::Handled { status_set: false });
    check(&mut world, &["leader-settings-changed"]);
    check(&mut world, &[]);
}

#[test]
fn u4_a_new_unit_waits_until_it_is_known_who_leads() {
    for (leader, told) in [("a/0", "leader-elected"), ("a/1", "leader-settings-changed")] {
        let mut world = World::leaderless("");
        world.relate("db", "b");
        let rest = check(&mut world, &["deploy 1", "install", "db-relation-created"]);
        assert_eq!(rest, Decision::Wait { wake_at: None });
        // All other work waits, too.
        world.configure("other");
        world.want_charm(2, false);
        world.join("db", "b/0");
        check(&mut world, &[]);
        world.lead_by(leader);
        world.step_until(|world| !world.committed.is_empty() && world.record().started);
        assert_eq!(world.take_trace()[0], told);
    }
}

#[test]
fn a_dying_unit_waits_for_no_leader() {
    let mut world = World::leaderless("");
    check(&mut world, &["deploy 1", "install"]);
    world.die();
    assert_eq!(check(&mut world, &["remove"]), Decision::Stop);
}

#[test]
fn a_started_unit_goes_on_while_nobody_leads_and_hears_then_who_does() {
    for (leader, told) in [("a/0", "leader-elected"), ("a/1", "leader-settings-changed")] {
        let mut world = World::started();
        world.lead_by_nobody();
        world.configure("other");
        let rest = check(&mut world, &["config-changed"]);
        assert!(matches!(rest, Decision::Idle { .. }), "{rest:?}");
        assert!(!world.record().leader, "it resigned");
        world.lead_by(leader);
        check(&mut world, &[told]);
    }
}
