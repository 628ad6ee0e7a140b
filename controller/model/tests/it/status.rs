//! What `status` shows (`hook-model.md` 7.5).

use periapt_host_api::{
    commit::EarlyEffect,
    event::Event,
    status::{AgentStatus, WorkloadStatus},
};
use periapt_model::{WorkerCommand, due_work};

use crate::world::{World, agent_status};

fn say(world: &mut World, unit: &str, status: WorkloadStatus, message: &str) {
    let item = world.item(unit, EarlyEffect::UnitStatus { status, message: message.into() });
    world.commit(unit, |commit| commit.early.push(item)).unwrap();
}

fn words(status: &periapt_host_api::status::StatusText) -> (&str, &str) {
    (&status.current, &status.message)
}

#[test]
fn q01_the_worst_unit_speaks_for_an_application_whose_leader_said_nothing() {
    // ST-2
    let mut world = World::new();
    world.deploy_app("app", 3);
    for (unit, status, message) in [
        ("app/0", WorkloadStatus::Active, "up"),
        ("app/1", WorkloadStatus::Blocked, "no database"),
        ("app/2", WorkloadStatus::Waiting, "soon"),
    ] {
        world.start(unit);
        say(&mut world, unit, status, message);
    }
    let status = world.status();
    assert_eq!(words(&status.applications["app"].application_status), ("blocked", "no database"));
}

#[test]
fn q03_a_hook_error_is_shown_on_the_workload() {
    // ST-1
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    say(&mut world, "app/0", WorkloadStatus::Active, "up");
    world.fail("app/0", Event::ConfigChanged);
    let status = world.status();
    let unit = &status.applications["app"].units["app/0"];
    assert_eq!(words(&unit.workload_status), ("error", "hook failed: \"config-changed\""));
    assert_eq!(words(&unit.juju_status), ("idle", ""));
    assert_eq!(status.applications["app"].application_status.current, "error");
}

#[test]
fn a_unit_whose_agent_is_away_is_lost_after_a_while() {
    // ST-1
    let mut world = World::new();
    world.deploy_app("app", 4);
    for unit in ["app/0", "app/1"] {
        world.start(unit);
    }
    say(&mut world, "app/0", WorkloadStatus::Active, "up");
    world.fail("app/1", Event::Start);
    let installing = world.item("app/2", agent_status(AgentStatus::Executing, "running install hook"));
    world.commit("app/2", |commit| commit.early.push(installing)).unwrap();
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    let (_, wake) = due_work(&world.root, world.now, world.lease_now_ms);
    assert_eq!(wake, Some(world.now + std::time::Duration::from_secs(30)), "status changes then");
    world.advance(29);
    assert_eq!(
        world.status().applications["app"].units["app/0"].juju_status.current,
        "executing".replace("executing", "idle")
    );
    world.advance(1);
    let status = world.status();
    let units = &status.applications["app"].units;
    let not_communicating = "agent is not communicating with the server";
    assert_eq!(words(&units["app/0"].juju_status), ("lost", not_communicating));
    assert_eq!(
        words(&units["app/0"].workload_status),
        ("unknown", "agent lost, see 'periapt show-unit app/0'")
    );
    assert_eq!(units["app/1"].workload_status.current, "error", "an error stays");
    assert_eq!(units["app/2"].juju_status.current, "executing", "in its install hook");
    assert_eq!(units["app/3"].juju_status.current, "allocating");
    assert_eq!(words(&status.machines["0"].juju_status), ("down", not_communicating));
}

#[test]
fn after_a_start_of_the_controller_agents_have_time_to_come_back() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let stored = world.stored.clone();
    world.root = periapt_model::Root::from_entities(stored, world.root.revision())
        .unwrap()
        .restart(world.now, world.lease_now_ms);
    assert_eq!(world.status().applications["app"].units["app/0"].juju_status.current, "idle");
    world.advance(30);
    assert_eq!(world.status().applications["app"].units["app/0"].juju_status.current, "lost");
}

#[test]
fn subordinates_stand_under_their_principals() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    let status = world.status();
    let app = &status.applications["app"].units["app/0"];
    assert!(app.subordinates.contains_key("logging/0"));
    assert!(app.subordinates["logging/0"].machine.is_empty());
    let logging = &status.applications["logging"];
    assert!(logging.units.is_empty());
    assert_eq!(logging.subordinate_to, ["app"]);
    assert_eq!(logging.relations["sink"][0].related_application, "app");
    let kinds: Vec<_> = status.relations.iter().map(|relation| relation.kind.as_str()).collect();
    assert_eq!(kinds, ["peer", "subordinate"]);
}
