//! Tests of the changes that a hook absorbs (`docs/hook-model.md` section 0).

use periapt_host_api::event::Event;

use crate::{World, check};

fn started_with(interval: u32) -> World {
    let mut world = World::started();
    world.update_status_every(&format!("{interval}s"));
    world.settle();
    world.take_trace();
    world
}

#[test]
fn several_changes_of_the_settings_are_one_config_changed_that_counts_them() {
    let mut world = started_with(300);
    assert_eq!(world.record().settings_version, Some(0));
    for version in 1..=3 {
        world.configure(&format!("settings-{version}"));
    }
    assert_eq!(world.due().coalesced, ["3 changes of the settings"]);
    check(&mut world, &["config-changed"]);
    world.configure("settings-4");
    assert_eq!(world.due().coalesced, Vec::<String>::new());
    check(&mut world, &["config-changed"]);
}

#[test]
fn a_hook_that_counts_as_the_tick_of_update_status_says_so() {
    let mut world = started_with(300);
    world.advance(361);
    world.configure("other");
    assert_eq!(world.due().coalesced, ["update-status, which was due"]);
    check(&mut world, &["config-changed"]);
    world.advance(10 * 360);
    assert_eq!(world.due().event, Event::UpdateStatus);
    assert_eq!(world.due().coalesced, ["9 update-status that were missed"]);
    world.configure("another");
    assert_eq!(world.due().coalesced, ["update-status, which was due, and 9 that were missed"]);
}

#[test]
fn units_that_came_and_went_unseen_are_counted_with_the_next_hook_of_their_relation() {
    let mut world = started_with(300);
    world.relate("db", "b");
    world.join("db", "b/9");
    world.leave("db", "b/9");
    world.settle();
    world.take_trace();
    // Members that left before relation-created do not count.
    world.join("db", "b/0");
    assert_eq!(world.due().coalesced, Vec::<String>::new());
    world.settle();
    for unit in ["b/1", "b/2"] {
        world.join("db", unit);
        world.leave("db", unit);
    }
    world.leave("db", "b/0");
    assert_eq!(world.due().coalesced, ["2 units came and went"]);
    world.settle();
    world.join("db", "b/3");
    assert_eq!(world.due().coalesced, Vec::<String>::new(), "b/0 departed, and was told");
}
