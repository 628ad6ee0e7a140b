//! Tests that the cost of a relation's hook does not grow with the relation. The cost is counted in allocations (each copy
//! and each list is at least one) and in bytes of the commit.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use periapt_host_api::{
    UnitName,
    relation::{BagKey, BagOwner},
    view::{BagView, Membership},
};
use periapt_uniter::{Decision, HookEnd, Jitter, hook_ended, resolve};

use crate::World;

/// The numbers of members of a small relation and of a large one.
const SIZES: [u32; 2] = [100, 2_000];

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

#[expect(unsafe_code, reason = "it passes each call to the system's allocator")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The cost of one hook.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// The allocations to find the hook and to derive its record.
    allocations: u64,
    /// The size of the committed record as JSON, in bytes.
    record: usize,
}

fn member(number: u32) -> UnitName {
    UnitName::new("b".parse().unwrap(), number)
}

/// Creates a started unit that was told of the first `told` units of `b`. All `count` units are members.
fn related(count: u32, told: u32) -> World {
    let mut world = World::started();
    world.update_status_every("0");
    world.relate("db", "b");
    world.join("db", "b/0");
    world.settle();
    let id = world.id("db");
    let first = world.view.bags[&bag(id, 0)].clone();
    for number in 1..count {
        let key = bag(id, number);
        world.view.bags.insert(key.clone(), BagView { key, ..first.clone() });
        world.view.relations.get_mut(&id).unwrap().members.insert(member(number), Membership::Joined);
    }
    let me = world.view.units.get_mut(&world.unit).unwrap();
    let members = &mut me.record.relations.get_mut(&id).unwrap().members;
    for number in 1..told {
        members.insert(member(number), first.version);
    }
    world
}

fn bag(relation: periapt_host_api::RelationId, number: u32) -> BagKey {
    BagKey { relation, owner: BagOwner::Unit(member(number)) }
}

/// Returns the cost of the next hook, which must be the expected one.
#[track_caller]
fn cost(world: &World, expected: &str) -> Cost {
    let before = ALLOCATED.get();
    let decision = resolve(&world.view, &world.unit, world.now);
    let Decision::RunHook(run) = decision else { panic!("no hook is due: {decision:?}") };
    let progress = hook_ended(&run, HookEnd::Handled { status_set: false }, world.now, Jitter::NONE);
    let allocations = ALLOCATED.get() - before;
    let event = format!("{} {}", run.event.hook_name(), run.event.remote_unit().unwrap());
    assert_eq!(event, expected);
    Cost { allocations, record: serde_json::to_vec(&progress.record).unwrap().len() }
}

/// Checks that a hook costs the same in both relations. A larger number takes a digit more.
#[track_caller]
fn is_flat(what: &str, cost: impl Fn(u32) -> Cost) {
    let [small, large] = SIZES.map(cost);
    assert!(large.allocations * 10 <= small.allocations * 13, "{what}: {small:?} {large:?}");
    assert!(large.record <= small.record + 20, "{what}: {small:?} {large:?}");
}

#[test]
fn a_member_that_joins_costs_the_same_in_a_large_relation() {
    is_flat("a unit that joins", |count| {
        cost(&related(count, count - 1), &format!("db-relation-joined b/{}", count - 1))
    });
}

#[test]
fn a_member_that_changes_costs_the_same_in_a_large_relation() {
    is_flat("a unit that changes", |count| {
        let mut world = related(count, count);
        let key = bag(world.id("db"), count / 2);
        let bag = world.view.bags[&key].clone();
        world.view.bags.insert(key, BagView { version: bag.version + 1, ..bag });
        cost(&world, &format!("db-relation-changed b/{}", count / 2))
    });
}

#[test]
fn a_member_that_departs_costs_the_same_in_a_large_relation() {
    is_flat("a unit that departs", |count| {
        let mut world = related(count, count);
        let id = world.id("db");
        world.view.relations.get_mut(&id).unwrap().members.remove(&member(count - 1));
        cost(&world, &format!("db-relation-departed b/{}", count - 1))
    });
}

#[test]
fn a_member_that_went_unseen_costs_the_same_in_a_large_relation() {
    is_flat("one that joins where all others came and went", |count| {
        let mut world = related(count, 1);
        let id = world.id("db");
        for number in 1..count - 1 {
            world.view.relations.get_mut(&id).unwrap().members.remove(&member(number));
        }
        cost(&world, &format!("db-relation-joined b/{}", count - 1))
    });
}

/// Members that wrote their settings unequally often are no runs: each costs the record some bytes (decision 60). Nothing
/// else grows with them.
#[test]
fn members_that_wrote_unequally_often_cost_the_record_a_dozen_bytes_each() {
    let [small, large] = SIZES.map(|count| {
        let mut world = related(count, count);
        let id = world.id("db");
        for number in 0..count {
            let version = u64::from(number % 7) + 1;
            let seen = if number == count / 2 { version + 1 } else { version };
            let bag = world.view.bags[&bag(id, number)].clone();
            world.view.bags.insert(bag.key.clone(), BagView { version, ..bag });
            let me = world.view.units.get_mut(&world.unit).unwrap();
            me.record.relations.get_mut(&id).unwrap().members.insert(member(number), seen);
        }
        cost(&world, &format!("db-relation-changed b/{}", count / 2))
    });
    assert!(large.allocations * 10 <= small.allocations * 13, "{small:?} {large:?}");
    let members = usize::try_from(SIZES[1] - SIZES[0]).unwrap();
    let bytes = large.record - small.record;
    assert!((8 * members..16 * members).contains(&bytes), "{bytes} bytes for {members} members more");
}
