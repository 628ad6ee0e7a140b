//! Tests of the statuses that the uniter sets for the charm (`docs/hook-model.md` 1.4).

use crate::{World, check};

#[test]
fn a06_install_shows_as_maintenance_and_start_as_unknown() {
    let mut world = World::started();
    assert_eq!(
        world.statuses,
        [
            "agent executing running install hook",
            "maintenance installing charm software",
            "agent executing running leader-elected hook",
            "agent executing running config-changed hook",
            "agent executing running start hook",
            "unknown",
            "agent idle",
        ]
    );
    world.statuses.clear();
    world.die();
    check(&mut world, &["stop", "remove"]);
    assert_eq!(
        world.statuses,
        [
            "agent executing running stop hook",
            "maintenance stopping charm software",
            "maintenance",
            "agent executing running remove hook",
            "maintenance cleaning up prior to charm deletion",
            "terminated",
        ]
    );
}

#[test]
fn a07_a_status_that_the_charm_set_is_kept() {
    for hook in ["install", "start"] {
        let mut world = World::new();
        world.setting_status.insert(hook.to_owned());
        world.settle();
        assert!(!world.statuses.contains(&"unknown".to_owned()), "{:?}", world.statuses);
        assert!(world.record().status_set);
    }
}

#[test]
fn c_7_a_status_set_by_a_failing_install_is_kept_when_it_is_tried_again() {
    let mut world = World::new();
    world.setting_status.insert("install".to_owned());
    world.failing.insert("install".to_owned());
    world.settle();
    world.statuses.clear();
    world.advance(5);
    world.settle();
    assert_eq!(
        world.statuses,
        ["agent executing running install hook", "agent error hook failed: \"install\""]
    );
}

#[test]
fn relation_hooks_name_the_remote_unit() {
    let mut world = World::started();
    world.relate("db", "b");
    world.join("db", "b/0");
    world.statuses.clear();
    world.settle();
    assert_eq!(
        world.statuses,
        [
            "agent executing running db-relation-created hook",
            "agent executing running db-relation-joined hook for b/0",
            "agent executing running db-relation-changed hook for b/0",
            "agent idle",
        ]
    );
}

#[test]
fn u6_a_unit_in_error_is_not_idle() {
    let mut world = World::started();
    world.failing.insert("config-changed".to_owned());
    world.configure("other");
    world.statuses.clear();
    check(&mut world, &["config-changed FAILED"]);
    assert_eq!(world.statuses.last().unwrap(), "agent error hook failed: \"config-changed\"");
}
