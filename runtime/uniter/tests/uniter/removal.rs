//! Tests of teardown (`docs/hook-model.md` 1.12, U-23, U-39, U-40).

use periapt_uniter::Decision;

use crate::{World, check};

#[test]
fn u23_relations_end_before_stop_and_remove() {
    let mut world = World::started_with_peers();
    world.relate("db", "b");
    world.join("ring", "a/1");
    world.join("db", "b/0");
    world.settle();
    world.take_trace();
    world.die();
    let rest = check(
        &mut world,
        &[
            "db-relation-departed b/0 (a/0 leaves)",
            "db-relation-broken",
            "ring-relation-departed a/1 (a/0 leaves)",
            "stop",
            "remove",
        ],
    );
    assert_eq!(rest, Decision::Stop);
}

#[test]
fn f19_a_dying_unit_departs_from_its_peers_and_does_not_break() {
    let mut world = World::started_with_peers();
    world.join("ring", "a/1");
    world.join("ring", "a/2");
    world.settle();
    world.take_trace();
    world.die();
    check(
        &mut world,
        &[
            "ring-relation-departed a/1 (a/0 leaves)",
            "ring-relation-departed a/2 (a/0 leaves)",
            "stop",
            "remove",
        ],
    );
}

#[test]
fn a_unit_that_dies_before_it_started_does_not_stop() {
    let mut world = World::new();
    world.failing.insert("leader-elected".to_owned());
    check(&mut world, &["deploy 1", "install", "leader-elected FAILED"]);
    world.die();
    world.failing.clear();
    world.advance(5);
    assert_eq!(check(&mut world, &["leader-elected skipped", "remove"]), Decision::Stop);
}

#[test]
fn u41_a_dying_unit_hears_of_nothing_new() {
    let mut world = World::started();
    world.lead_by("a/1");
    world.settle();
    world.take_trace();
    world.die();
    world.relate("db", "b");
    world.write_leader_settings();
    world.configure("other");
    world.want_charm(2, false);
    assert_eq!(check(&mut world, &["stop", "remove"]), Decision::Stop);
    assert!(!world.is_member("db"));
}

#[test]
fn f23_a_principal_is_not_dead_before_its_subordinates_are_gone() {
    let mut world = World::started();
    world.accompany("s");
    world.settle();
    world.run_to_rest("s/0");
    world.die();
    let rest = check(&mut world, &["stop", "remove"]);
    assert_eq!(rest, Decision::Wait { wake_at: None });
    world.run_to_rest("s/0");
    assert_eq!(check(&mut world, &[]), Decision::Stop);
}

#[test]
fn implicit_relations_are_left_by_a_dying_unit() {
    let mut world = World::started();
    world.relate("juju-info", "b");
    world.settle();
    world.die();
    world.step(); // The unit resigns.
    let Decision::Commit(progress) = world.decide() else { panic!() };
    assert_eq!(progress.transitions.leave_scope.len(), 1);
    check(&mut world, &["stop", "remove"]);
}
