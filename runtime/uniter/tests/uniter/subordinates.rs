//! Tests of relations of container scope (`docs/hook-model.md` ).

use periapt_host_api::{UnitName, status::Life};

use crate::{World, check};

/// Returns a started `a/0` with a container relation to `s` on the endpoint `host`.
fn contained() -> World {
    let mut world = World::declaring("requires:\n  host: {interface: any, scope: container}\n");
    world.settle();
    world.take_trace();
    world.accompany_at("host", "s");
    world
}

#[test]
fn g06_a_principal_enters_before_its_subordinate_exists() {
    let mut world = contained();
    assert!(!world.has_unit("s/0"));
    check(&mut world, &["host-relation-created"]);
    assert!(world.is_member("host") && world.has_unit("s/0"));
}

#[test]
fn r17_g08_a_principal_sees_its_own_subordinate_alone() {
    let mut world = contained();
    // Another unit of the application on the same agent gets its subordinate first.
    world.add_beside();
    world.steps_of("a/1", |world| world.has_unit("s/0"));
    world.join("host", "s/0");
    check(&mut world, &["host-relation-created"]);
    world.join("host", "s/1");
    assert_eq!(world.relation("host").unwrap().members.len(), 4);
    check(&mut world, &["host-relation-joined s/1", "host-relation-changed s/1"]);
}

#[test]
fn r17_a_subordinate_sees_its_principal_alone() {
    let mut world = contained();
    world.add_beside();
    world.steps_of("a/1", |world| world.has_unit("s/0"));
    world.settle();
    world.take_trace();
    world.play("s/1");
    assert_eq!(world.relation("host").unwrap().members.len(), 2, "a/0 and a/1");
    check(
        &mut world,
        &[
            "deploy 1",
            "install",
            "sink-relation-created",
            "leader-elected",
            "config-changed",
            "start",
            "sink-relation-joined a/0",
            "sink-relation-changed a/0",
        ],
    );
}

#[test]
fn r17_a_subordinate_stays_out_of_the_relations_of_other_principals() {
    let mut world = contained();
    let other = world.accompany_another("p", "s");
    world.settle();
    world.play("s/1");
    world.settle();
    assert!(world.is_member("host"));
    assert!(world.view.relations.contains_key(&other) && !world.has_member(other, "s/1"));
}

#[test]
fn r17_subordinates_of_one_principal_see_each_other() {
    let mut world = contained();
    world.accompany("t");
    world.add_beside();
    world.steps_of("a/1", |world| world.has_unit("s/0") && world.has_unit("t/0"));
    world.settle();
    world.play("s/1");
    world.settle();
    world.take_trace();
    world.integrate("s:other", "t:sink");
    world.join("other", "t/0");
    world.join("other", "t/1");
    check(&mut world, &["other-relation-created", "other-relation-joined t/1", "other-relation-changed t/1"]);
}

#[test]
fn r16_a_principal_waits_until_an_earlier_subordinate_is_gone() {
    let mut world = contained();
    check(&mut world, &["host-relation-created"]);
    world.run_to_rest("s/0");
    check(&mut world, &["host-relation-joined s/0", "host-relation-changed s/0"]);
    let before = world.id("host");
    world.remove_relation("host");
    check(&mut world, &["host-relation-departed s/0", "host-relation-broken"]);
    world.steps_of("s/0", |world| !world.has_member(before, "s/0"));
    assert_eq!(world.view.units[&"s/0".parse::<UnitName>().unwrap()].life, Life::Dying);
    world.integrate("a:host", "s:sink");
    check(&mut world, &[]);
    assert!(!world.is_member("host"));
    world.run_to_rest("s/0");
    assert!(!world.has_unit("s/0"));
    check(&mut world, &["host-relation-created"]);
}
