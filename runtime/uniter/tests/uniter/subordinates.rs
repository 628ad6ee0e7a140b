//! Relations of container scope (`hook-model.md` ).

use periapt_host_api::{
    UnitName,
    relation::Scope,
    status::{Life, StatusInfo, WorkloadStatus},
    view::UnitOutline,
};

use crate::{World, check};

/// `a/0`, started, with a container relation to `s`.
fn contained() -> World {
    let mut world = World::started();
    world.relate(1, "host", Some("s"));
    world.relation(1).scope = Scope::Container;
    world
}

#[test]
fn g06_a_principal_enters_before_its_subordinate_exists() {
    let mut world = contained();
    check(&mut world, &["host-relation-created"]);
    assert!(world.is_member(1));
}

#[test]
fn r17_g08_a_principal_sees_its_own_subordinate_alone() {
    let mut world = contained();
    world.me().subordinates.insert("s/1".parse().unwrap());
    world.join(1, "s/0", 1);
    world.join(1, "s/1", 1);
    check(&mut world, &["host-relation-created", "host-relation-joined s/1", "host-relation-changed s/1"]);
}

#[test]
fn r17_a_subordinate_sees_its_principal_alone() {
    let mut world = contained();
    world.me().principal = Some("s/4".parse().unwrap());
    world.join(1, "s/3", 1);
    world.join(1, "s/4", 1);
    check(&mut world, &["host-relation-created", "host-relation-joined s/4", "host-relation-changed s/4"]);
}

#[test]
fn r17_a_subordinate_stays_out_of_the_relations_of_other_principals() {
    let mut world = contained();
    world.me().principal = Some("other/0".parse().unwrap());
    world.join(1, "s/0", 1);
    check(&mut world, &[]);
    assert!(!world.is_member(1));
}

#[test]
fn r17_subordinates_of_one_principal_see_each_other() {
    let mut world = contained();
    world.put_unit("p/0");
    let principal = world.view.units.get_mut(&"p/0".parse::<UnitName>().unwrap()).unwrap();
    principal.subordinates = ["a/0", "s/9"].iter().map(|unit| unit.parse().unwrap()).collect();
    world.me().principal = Some("p/0".parse().unwrap());
    world.join(1, "s/8", 1);
    world.join(1, "s/9", 1);
    check(&mut world, &["host-relation-created", "host-relation-joined s/9", "host-relation-changed s/9"]);
}

#[test]
fn r16_a_principal_waits_until_an_earlier_subordinate_is_gone() {
    let mut world = contained();
    let old: UnitName = "s/0".parse().unwrap();
    world.me().subordinates.insert(old.clone());
    world.view.outlines.insert(
        old.clone(),
        UnitOutline {
            name: old.clone(),
            life: Life::Dying,
            workload_status: StatusInfo::new(WorkloadStatus::Active, "", world.now),
        },
    );
    check(&mut world, &[]);
    assert!(!world.is_member(1));
    world.view.outlines.remove(&old);
    world.me().subordinates.clear();
    check(&mut world, &["host-relation-created"]);
}
