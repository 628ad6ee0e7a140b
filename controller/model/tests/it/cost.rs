//! The cost of a commit does not grow with its model. Costs are counted in allocations: every copy, list and new node
//! takes at least one.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

use periapt_host_api::{
    RelationId, StoreId,
    access::ModelAccess,
    command::{Caller, Command},
    commit::EarlyEffect,
    status::WorkloadStatus,
};
use periapt_model::{
    ModelState, WorkSchedule, WorkerCommand, assignment, due_work, follow, is_visible, may_fetch_charm, view,
};

use crate::world::{World, deploy_command};

/// The units of a small and a large model. The trees of both have nearly the same height.
const SIZES: [u32; 2] = [100, 2_000];

/// The factor by which a step may cost more in the large model, whose paths are one node longer.
const GROWTH: f64 = 1.5;

thread_local! {
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

#[expect(unsafe_code, reason = "what is asked of it goes to the system's allocator as it is")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + 1);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The allocations of one step, by the controller's parts.
#[derive(Debug, Clone, Copy)]
struct Cost {
    /// The evaluation of the command, and the application of its writes.
    command: u64,
    /// The computation of the next view and its frame.
    frame: u64,
    /// The bytes of that frame, as JSON.
    bytes: u64,
    /// The search for due work, and the keeper's assignments.
    derived: u64,
}

/// A model whose units are all on one agent. Its invariants are not checked after each step.
struct Large {
    world: World,
    caller: Caller,
}

impl Large {
    fn new(units: u32) -> Self {
        let mut world = World::new();
        world.checked = false;
        let charm = world.upload_app();
        world.run(deploy_command(charm, "app", units)).unwrap();
        world.deploy_db("db", 1);
        world.settle();
        let caller = world.runner("a1");
        let mut large = Self { world, caller };
        for number in 0..units {
            large.world.start(&format!("app/{number}"));
        }
        large
    }

    /// Returns the cost of a step, when no earlier work is due.
    fn cost(&mut self, step: impl FnOnce(&mut World)) -> Cost {
        let Self { world, caller } = self;
        let (before, seen) = (world.root.clone(), view(&world.root, caller));
        let command = counted(|| step(world));
        let frame = counted(|| {
            let next = follow(&before, &seen, &world.root, caller);
            seen.frame_to(&next, StoreId(Default::default()))
        });
        let derived = counted(|| {
            let agent = "a1".parse().unwrap();
            let due = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
            (due, assignment(world.state(), &agent))
        });
        let next = follow(&before, &seen, &world.root, caller);
        assert_eq!(next, view(&world.root, caller));
        let bytes = serde_json::to_vec(&seen.frame_to(&next, StoreId(Default::default()))).unwrap().len();
        Cost { command, frame, bytes: u64::try_from(bytes).unwrap(), derived }
    }
}

/// Returns the number of allocations that an act of this thread takes.
pub(crate) fn counted<T>(act: impl FnOnce() -> T) -> u64 {
    let before = ALLOCATED.get();
    let done = act();
    let count = ALLOCATED.get() - before;
    drop(done);
    count
}

/// Checks that a step costs the same in both models.
fn is_flat(what: &str, prepare: impl Fn(&mut World), step: impl Fn(&mut World)) {
    let costs = SIZES.map(|units| {
        let mut large = Large::new(units);
        prepare(&mut large.world);
        large.world.settle();
        large.cost(&step)
    });
    let [small, large] = costs;
    for (part, small, large) in [
        ("its command", small.command, large.command),
        ("its frame", small.frame, large.frame),
        ("what is sent", small.bytes, large.bytes),
        ("what is derived", small.derived, large.derived),
    ] {
        let most = (small.max(20) as f64 * GROWTH) as u64;
        assert!(
            large <= most,
            "{what}: {part} takes {small} allocations in the small model and {large} in the large"
        );
    }
}

fn related(world: &mut World) -> RelationId {
    let database = "db".parse().unwrap();
    let relation = world.state().relations_of(&database).next().map(|relation| relation.id);
    relation.unwrap_or_else(|| world.integrate("app:db", "db:server").unwrap())
}

/// Enters all units but the last into the scope.
fn entered(world: &mut World) {
    let id = related(world);
    world.start("db/0");
    world.enter("db/0", id).unwrap();
    let units: Vec<String> =
        world.state().units_of(&"app".parse().unwrap()).map(|unit| unit.name.to_string()).collect();
    let (_, others) = units.split_last().unwrap();
    for unit in others {
        world.enter(unit, id).unwrap();
    }
}

fn last(world: &World) -> String {
    world.state().units_of(&"app".parse().unwrap()).last().unwrap().name.to_string()
}

#[test]
fn a_hook_that_sets_a_status_costs_the_same_in_a_large_model() {
    is_flat(
        "a status",
        |_| {},
        |world| {
            let effect = EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message: "ready".into() };
            let item = world.item("app/50", effect);
            world.commit("app/50", |commit| commit.early.push(item)).unwrap();
        },
    );
}

#[test]
fn a_new_unit_costs_the_same_in_a_large_model() {
    let application = || "app".parse().unwrap();
    let add = |world: &mut World| {
        let (placement, attach_storage) = (vec![], vec![]);
        world
            .run(Command::AddUnits { application: application(), count: 1, placement, attach_storage })
            .unwrap();
    };
    is_flat(
        "a unit that is placed",
        |_| {},
        |world| {
            add(world);
            world.settle();
        },
    );
}

#[test]
fn a_unit_that_waits_for_its_place_among_many_costs_the_same() {
    let costs = SIZES.map(|units| {
        let mut world = World::new();
        world.checked = false;
        let charm = world.upload_app();
        world.run(deploy_command(charm, "app", units)).unwrap();
        // All units are created before any is placed.
        let next = |world: &World| world.state().work().next().map(|item| item.id);
        while let Some(item) = next(&world) {
            world.work(WorkerCommand::RunWork(world.model, item));
        }
        // The first own unit brings the application into view, and all its units as outlines.
        let assign = |world: &mut World| world.work(WorkerCommand::AssignUnits(world.model));
        assign(&mut world);
        let caller = world.runner("a1");
        Large { world, caller }.cost(assign)
    });
    let [small, large] = costs;
    assert!(large.command <= small.command * 3 / 2, "{small:?} {large:?}");
    assert!(large.frame <= small.frame * 3 / 2, "{small:?} {large:?}");
}

#[test]
fn the_end_of_a_unit_costs_the_same_in_a_large_model() {
    let dying = |world: &mut World| {
        let unit = last(world).parse().unwrap();
        world.run(Command::RemoveUnit { unit, force: None, storage: Default::default() }).unwrap();
    };
    is_flat("the end of a unit", dying, |world| drop(world.terminate(&last(world)).unwrap()));
}

#[test]
fn a_unit_that_enters_a_scope_costs_the_same_in_a_large_relation() {
    is_flat("an entered scope", entered, |world| {
        let id = related(world);
        world.enter(&last(world), id).unwrap();
    });
}

#[test]
fn a_hook_of_a_unit_with_many_counterparts_costs_the_same() {
    let told = |world: &mut World| {
        entered(world);
        let id = related(world);
        let units: Vec<String> = world.state().members(&id).map(|(unit, _)| unit.to_string()).collect();
        for unit in units.iter().filter(|unit| unit.starts_with("app/")) {
            world.tell("db/0", id, unit, true);
        }
        let unit = last(world);
        world.enter(&unit, id).unwrap();
    };
    is_flat("a unit that was told of one more", told, |world| {
        let (id, unit) = (related(world), last(world));
        world.tell("db/0", id, &unit, true);
    });
}

#[test]
fn a_unit_that_leaves_a_scope_and_its_model_costs_the_same_in_a_large_relation() {
    let prepare = |world: &mut World| {
        entered(world);
        let (id, unit) = (related(world), last(world));
        world.enter(&unit, id).unwrap();
        let removed = unit.parse().unwrap();
        world.run(Command::RemoveUnit { unit: removed, force: None, storage: Default::default() }).unwrap();
    };
    is_flat("a left scope", prepare, |world| {
        let (id, unit) = (related(world), last(world));
        world.leave(&unit, id).unwrap();
        world.terminate(&unit).unwrap();
    });
}

#[test]
fn a_users_charm_is_found_by_the_users_own_models_however_many_others_use_it() {
    let looked_at = [10, 100].map(|others| {
        let mut world = World::new();
        world.checked = false;
        let charm = world.upload_app();
        for number in 0..others {
            let model = world.add_model(&format!("other{number}"));
            world.within(model, |world| world.run(deploy_command(charm, "app", 1)).unwrap());
        }
        let jane = world.add_user("jane");
        let own = world.add_model("own");
        let grant = Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Read };
        world.within(own, |world| {
            world.run(grant).unwrap();
            world.run(deploy_command(charm, "app", 1)).unwrap();
        });
        let looked_at = Cell::new(0);
        let sees = |state: &ModelState| {
            looked_at.set(looked_at.get() + 1);
            is_visible(&world.root, &jane, state)
        };
        assert!(may_fetch_charm(&world.root, &jane, &charm, &sees));
        looked_at.get()
    });
    assert_eq!(looked_at, [1, 1], "models that were looked at");
}

#[test]
fn many_forced_removals_to_come_cost_what_is_due_now() {
    let prepare = |world: &mut World| {
        let units: Vec<_> =
            world.state().units_of(&"app".parse().unwrap()).map(|unit| unit.name.clone()).collect();
        for unit in units {
            let force = Some(periapt_host_api::command::Force { max_wait: 60 });
            world.run(Command::RemoveUnit { unit, force, storage: Default::default() }).unwrap();
        }
    };
    is_flat("a unit among many that are forced to go", prepare, |world| {
        drop(world.terminate(&last(world)).unwrap())
    });
}
