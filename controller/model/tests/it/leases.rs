//! Leadership (`docs/hook-model.md` 7.4, `docs/design/leases.md`).

use periapt_host_api::{
    ErrorCode, LeaderTerm, Refusal,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    command::Command,
    timing::LEASE_AFTER_RESTART_MS,
};
use periapt_model::{WorkSchedule, due_work};

use crate::world::{World, unit};

fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.start("app/0");
    world.start("app/1");
    world
}

fn granted(answer: Result<RunnerAnswer, Refusal>) -> LeaderTerm {
    match answer.unwrap() {
        RunnerAnswer::Granted { term, .. } => term,
        other => panic!("{other:?}"),
    }
}

fn held_by(answer: Result<RunnerAnswer, Refusal>, holder: &str) {
    assert_eq!(answer.unwrap(), RunnerAnswer::Held { holder: unit(holder) });
}

fn claim_for(world: &mut World, name: &str, application: &str, seconds: u32) -> Refusal {
    let application = application.parse().unwrap();
    let claim = LeaseClaim { unit: unit(name), application, seconds };
    world.runner_call("a1", RunnerCommand::Claim(claim)).unwrap_err()
}

#[test]
fn the_first_claimant_leads_and_a_renewal_keeps_the_term() {
    // D-1
    let mut world = world();
    let term = granted(world.claim("app/0", 60));
    held_by(world.claim("app/1", 60), "app/0");
    world.advance(59);
    let stored = world.stored.clone();
    assert_eq!(granted(world.claim("app/0", 60)), term);
    assert_eq!(world.stored, stored, "a renewal is not stored");
    world.advance(59);
    held_by(world.claim("app/1", 60), "app/0");
}

#[test]
fn k03_nobody_else_leads_while_a_lease_holds() {
    // D-3: 60 s from the last renewal, which covers the 30 s that is-leader promises, and 5 % for the clocks.
    let mut world = world();
    let first = granted(world.claim("app/0", 60));
    for _ in 0..63 {
        held_by(world.claim("app/1", 60), "app/0");
        world.advance(1);
    }
    let second = granted(world.claim("app/1", 60));
    assert!(second > first);
    held_by(world.claim("app/0", 60), "app/1");
}

#[test]
fn a_shorter_renewal_takes_nothing_away() {
    let mut world = world();
    granted(world.claim("app/0", 60));
    granted(world.claim("app/0", 5));
    world.advance(59);
    held_by(world.claim("app/1", 60), "app/0");
}

#[test]
fn k08_a_unit_claims_for_itself_and_its_own_application() {
    // D-2
    let mut world = world();
    world.deploy_db("db", 1);
    world.agent("a2");
    assert_eq!(claim_for(&mut world, "app/0", "db", 60).code, ErrorCode::PermissionDenied);
    let application = "app".parse().unwrap();
    let claim = LeaseClaim { unit: unit("app/0"), application, seconds: 60 };
    let foreign = world.runner_call("a2", RunnerCommand::Claim(claim)).unwrap_err();
    assert_eq!(foreign.code, ErrorCode::PermissionDenied);
    assert!(world.application("app").leader.is_none());
}

#[test]
fn k09_a_lease_is_between_five_seconds_and_a_minute() {
    let mut world = world();
    for seconds in [0, 4, 61, u32::MAX] {
        assert_eq!(claim_for(&mut world, "app/0", "app", seconds).code, ErrorCode::BadRequest);
    }
    granted(world.claim("app/0", 5));
    granted(world.claim("app/0", 60));
}

#[test]
fn a_dying_unit_takes_no_leadership_but_keeps_what_it_has() {
    // U-41
    let mut world = world();
    granted(world.claim("app/0", 60));
    for name in ["app/0", "app/1"] {
        world
            .run(Command::RemoveUnit { unit: unit(name), force: None, storage: Default::default() })
            .unwrap();
    }
    granted(world.claim("app/0", 60));
    world.advance(63);
    assert_eq!(world.claim("app/1", 60).unwrap_err().code, ErrorCode::NotAlive);
}

#[test]
fn a_unit_that_is_gone_loses_leadership_at_once() {
    // L-4, D-5
    let mut world = world();
    let first = granted(world.claim("app/0", 60));
    world.run(Command::RemoveUnit { unit: unit("app/0"), force: None, storage: Default::default() }).unwrap();
    world.terminate("app/0").unwrap();
    assert!(world.application("app").leader.is_none());
    assert!(granted(world.claim("app/1", 60)) > first);
}

#[test]
fn a_lapsed_lease_is_taken_away_once_another_unit_could_lead() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let term = granted(world.claim("app/0", 60));
    world.advance(120);
    world.settle();
    assert!(world.application("app").leader.is_some(), "nobody else is there");
    assert_eq!(granted(world.claim("app/0", 60)), term);
    let add = Command::AddUnits {
        application: "app".parse().unwrap(),
        count: 1,
        placement: vec![],
        attach_storage: vec![],
    };
    world.run(add).unwrap();
    world.settle();
    let (_, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert_eq!(wake, Some(world.now + jiff_seconds(63)));
    world.advance(63);
    world.settle();
    assert!(world.application("app").leader.is_none());
    assert!(granted(world.claim("app/1", 60)) > term);
}

fn jiff_seconds(seconds: i64) -> std::time::Duration {
    std::time::Duration::from_secs(seconds.unsigned_abs())
}

#[test]
fn after_a_restart_each_holder_has_a_full_new_term() {
    let mut world = world();
    let term = granted(world.claim("app/0", 60));
    let stored = world.stored.clone().into_iter();
    let loaded = periapt_model::Root::from_entities(stored, world.root.revision()).unwrap();
    // Another process's monotonic clock may start at any value.
    world.lease_now_ms = 5;
    world.root = loaded.restart(world.now, world.lease_now_ms);
    held_by(world.claim("app/1", 60), "app/0");
    world.lease_now_ms += LEASE_AFTER_RESTART_MS - 1;
    held_by(world.claim("app/1", 60), "app/0");
    assert_eq!(granted(world.claim("app/0", 60)), term);
}
