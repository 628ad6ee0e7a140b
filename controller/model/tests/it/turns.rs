//! The order of work among busy models.

use std::collections::{BTreeMap, BTreeSet};

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal,
    command::{Command, Force},
};
use periapt_model::{WorkSchedule, WorkerCommand, due_work};

use crate::world::{World, unit};

/// More units than one model's share of a turn.
const UNITS: u32 = 10;

fn due(world: &World, schedule: &WorkSchedule) -> Vec<WorkerCommand> {
    due_work(&world.root, world.now, world.lease_now_ms, schedule).0
}

/// Adds models, each with so much due work.
fn add_busy_models(world: &mut World, count: usize) -> BTreeSet<ModelUuid> {
    let mut models = BTreeSet::new();
    for number in 0..count {
        world.model = world.add_model(&format!("m{number}"));
        world.attach("a1");
        for name in world.deploy_app("app", UNITS) {
            world.start(&name.to_string());
        }
        models.insert(world.model);
    }
    for model in &models {
        world.model = *model;
        for number in 0..UNITS {
            let gone = unit(&format!("app/{number}"));
            let force = Some(Force { max_wait: 0 });
            world.run(Command::RemoveUnit { unit: gone, force, storage: Default::default() }).unwrap();
        }
    }
    models
}

#[test]
fn a_model_with_much_to_do_leaves_room_for_all_others() {
    let mut world = World::new();
    let models = add_busy_models(&mut world, 12);
    let mut schedule = WorkSchedule::default();
    let mut served: BTreeMap<ModelUuid, usize> = BTreeMap::new();
    for _ in 0..2 {
        for command in due(&world, &schedule) {
            *served.entry(command.model().unwrap()).or_default() += 1;
            // The order holds even if every command is refused and no state changes.
            let refusal = Refusal::new(ErrorCode::QuotaExceeded, "too much");
            schedule.refused(&command, &refusal, world.lease_now_ms);
        }
    }
    assert_eq!(served.keys().copied().collect::<BTreeSet<_>>(), models, "each came to its turn");
    assert!(served.values().all(|count| *count <= 16), "{served:?}");
}

#[test]
fn a_step_that_was_refused_waits_longer_each_time_and_the_next_is_tried() {
    let mut world = World::new();
    add_busy_models(&mut world, 1);
    let mut schedule = WorkSchedule::default();
    let refused = due(&world, &schedule)[0].clone();
    let refusal = Refusal::new(ErrorCode::QuotaExceeded, "too much");
    let unavailable = Refusal::new(ErrorCode::StorageUnavailable, "not now");
    for (refusal, seconds) in [(&refusal, 1), (&refusal, 2), (&refusal, 4), (&unavailable, 1)] {
        schedule.refused(&refused, refusal, world.lease_now_ms);
        let others = due(&world, &schedule);
        assert!(!others.is_empty() && !others.contains(&refused), "{others:?}");
        world.advance(seconds - 1);
        assert!(!due(&world, &schedule).contains(&refused));
        world.advance(1);
        assert!(due(&world, &schedule).contains(&refused), "after {seconds} s");
    }
    schedule.done(&refused);
    schedule.refused(&refused, &refusal, world.lease_now_ms);
    world.advance(1);
    assert!(due(&world, &schedule).contains(&refused), "what was done begins anew");
}
