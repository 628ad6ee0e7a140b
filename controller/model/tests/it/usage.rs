//! The resource usage of units: counted once, and kept after their removal.

use periapt_host_api::{
    Digest, Revision,
    agent::RunnerCommand,
    command::Command,
    commit::UnitCommit,
    event::Event,
    journal::{HookCosts, HookOutcome, JournalRecord, RecordedCalls},
    usage::{FUEL_PER_SECOND, Usage},
};
use periapt_model::model_usage;

use crate::world::World;

/// Makes the commit report a hook that computed for so many seconds.
fn ran(commit: &mut UnitCommit, outcome: HookOutcome, seconds: u64) {
    commit.journal = Some(JournalRecord {
        seq: commit.seq,
        event: Event::Start,
        attempt: 1,
        snapshot: Revision(1),
        charm: Digest::of(b"charm"),
        component: Digest::of(b"component"),
        engine: "none".into(),
        started_at: periapt_host_api::Timestamp::UNIX_EPOCH,
        outcome,
        costs: HookCosts {
            fuel: seconds * FUEL_PER_SECOND,
            memory: seconds << 20,
            wall_us: seconds * 2_000_000,
            host_calls: 10,
            log_bytes: 5,
        },
        coalesced: vec![],
        calls: RecordedCalls::default(),
        seed: String::new(),
        sealed: None,
    });
}

fn total(world: &World) -> Usage {
    model_usage(world.state()).total
}

#[test]
fn each_hook_counts_once_however_often_its_commit_comes() {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.start("app/0");
    let mut commit = world.commit_of("app/0");
    ran(&mut commit, HookOutcome::Handled, 2);
    for _ in 0..2 {
        world.runner_call("a1", RunnerCommand::Commit(Box::new(commit.clone()))).unwrap();
    }
    let failed = HookOutcome::Failed { message: "no".into() };
    world.commit("app/0", |commit| ran(commit, failed, 1)).unwrap();
    // An error that is resolved without a retry costs nothing.
    world.commit("app/0", |commit| ran(commit, HookOutcome::Skipped, 9)).unwrap();
    let idle = Usage { hooks: 3, fuel: 7, ..Usage::default() };
    world.commit("app/0", |commit| commit.uncommitted_usage = idle).unwrap();
    let used = world.unit("app/0").usage;
    assert_eq!((used.hooks, used.failed, used.fuel), (5, 1, 3 * FUEL_PER_SECOND + 7));
    assert_eq!((used.peak_memory, used.wall_us, used.host_calls), (2 << 20, 6_000_000, 20));
    assert!(world.unit("app/1").usage.is_empty());
    assert_eq!(total(&world), used);
}

#[test]
fn a_commit_that_is_refused_counts_nothing() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
        .commit("app/0", |commit| {
            ran(commit, HookOutcome::Handled, 1);
            commit.seq += 1;
        })
        .unwrap_err();
    assert!(total(&world).is_empty());
}

#[test]
fn what_was_used_stays_with_the_application_and_then_with_the_model() {
    let mut world = World::new();
    world.deploy_app("app", 2);
    for name in ["app/0", "app/1"] {
        world.start(name);
        world.commit(name, |commit| ran(commit, HookOutcome::Handled, 1)).unwrap();
    }
    let before = total(&world);
    assert_eq!(before.hooks, 2);
    let force = Some(periapt_host_api::command::Force { max_wait: 0 });
    world
        .run(Command::RemoveUnit { unit: "app/0".parse().unwrap(), storage: Default::default(), force })
        .unwrap();
    world.settle();
    let usage = model_usage(world.state());
    let app = &usage.applications[&"app".parse().unwrap()];
    assert_eq!((app.removed.hooks, app.units.len()), (1, 1));
    assert_eq!(usage.total, before);
    world
        .run(Command::RemoveApplication {
            application: "app".parse().unwrap(),
            storage: Default::default(),
            force,
        })
        .unwrap();
    world.settle();
    let usage = model_usage(world.state());
    assert!(usage.applications.is_empty());
    assert_eq!((usage.removed, usage.total), (before, before));
}
