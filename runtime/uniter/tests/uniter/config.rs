//! Tests of config-changed (`docs/hook-model.md` 1.7 rule 17d, U-3).

use periapt_host_api::event::Event;
use periapt_uniter::{HookEnd, Jitter, hook_ended};

use crate::{World, check};

#[test]
fn d01_a_changed_setting_is_one_hook() {
    let mut world = World::started();
    world.configure("other");
    check(&mut world, &["config-changed"]);
    check(&mut world, &[]);
}

#[test]
fn d02_a_setting_set_to_what_it_was_is_no_hook() {
    let mut world = World::started();
    world.configure("other");
    world.configure("config-1");
    check(&mut world, &[]);
}

#[test]
fn d03_changed_addresses_or_trust_are_a_config_changed() {
    let mut world = World::started();
    world.readdress("10.0.0.9");
    check(&mut world, &["config-changed"]);
    world.set_option("trust", "true");
    check(&mut world, &["config-changed"]);
}

#[test]
fn d05_changes_that_land_while_a_hook_runs_are_one_more_hook() {
    let mut world = World::started();
    world.configure("second");
    let second = world.application().config_hash.clone();
    let run = world.due();
    world.configure("third");
    world.configure("fourth");
    world.end(&run, HookEnd::Handled { status_set: false });
    assert_eq!(world.record().seen.config, second, "U-3: what was current at the decision");
    check(&mut world, &["config-changed"]);
    check(&mut world, &[]);
}

#[test]
fn r14_only_a_committed_config_changed_refreshes_the_addresses() {
    let mut world = World::started();
    world.configure("other");
    let run = world.due();
    assert_eq!(run.event, Event::ConfigChanged);
    let ended = |end| hook_ended(&run, end, world.now, Jitter::NONE).transitions.refresh_addresses;
    assert!(ended(HookEnd::Handled { status_set: false }));
    assert!(!ended(HookEnd::Failed { message: String::new(), status_set: false }));
}
