//! The placement of units, and the removal of machines.

use periapt_host_api::{
    ErrorCode, MachineId,
    command::{Answer, Command, Force, Placement},
    status::{AgentStatus, WorkloadStatus},
};
use periapt_model::{WorkSchedule, WorkerCommand, due_work};

use crate::world::{DB, World, on_machine, unit};

fn add(world: &mut World, count: u32, placement: Vec<Placement>) {
    world
        .run(Command::AddUnits {
            application: "db".parse().unwrap(),
            count,
            placement,
            attach_storage: vec![],
        })
        .unwrap();
    world.settle();
}

#[test]
fn units_go_to_the_agent_with_the_fewest() {
    let mut world = World::new();
    world.agent("a2");
    world.deploy_db("db", 5);
    let agents: Vec<String> = (0..5).map(|number| world.agent_of(&format!("db/{number}"))).collect();
    assert_eq!(agents, ["a1", "a2", "a1", "a2", "a1"]);
}

#[test]
fn a_placement_is_followed() {
    let mut world = World::new();
    world.agent("a2");
    world.deploy_db("db", 1);
    add(&mut world, 2, vec![Placement::Agent("a1".parse().unwrap()), on_machine(0)[0].clone()]);
    assert_eq!(world.agent_of("db/1"), "a1");
    assert_eq!(world.unit("db/2").machine, world.unit("db/0").machine);
}

#[test]
fn q08_without_an_agent_a_unit_waits_with_the_reason_and_is_placed_later() {
    let mut world = World::new();
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(60);
    let charm = world.upload(DB);
    world.deploy(charm, "db", 2);
    let waiting = world.unit("db/0");
    assert_eq!(waiting.machine, None);
    assert_eq!(waiting.agent_status.status, AgentStatus::Error);
    assert_eq!(waiting.agent_status.message, "waiting for an agent: none is connected");
    let shown = &world.status().applications["db"].units["db/0"];
    assert_eq!(
        (shown.juju_status.current.as_str(), shown.workload_status.current.as_str()),
        ("error", "waiting")
    );
    assert!(
        due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default()).0.is_empty(),
        "nothing to try now"
    );
    world.work(WorkerCommand::AgentConnected("a1".parse().unwrap()));
    world.settle();
    let placed = world.unit("db/0");
    assert!(placed.machine.is_some());
    assert_eq!(placed.agent_status.status, AgentStatus::Allocating);
    assert_eq!(placed.workload_status.status, WorkloadStatus::Waiting);
}

#[test]
fn an_agent_that_lost_its_connection_a_moment_ago_still_gets_units() {
    let mut world = World::new();
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(5);
    world.deploy_db("db", 1);
    assert_eq!(world.agent_of("db/0"), "a1");
}

#[test]
fn a_machine_with_units_is_not_removed_and_an_empty_one_goes_with_its_last_unit() {
    // L-5
    let mut world = World::new();
    world.deploy_db("db", 1);
    add(&mut world, 1, on_machine(0));
    world.start("db/0");
    world.start("db/1");
    let remove = |force| Command::RemoveMachine { machine: MachineId(0), force };
    let refusal = world.run(remove(None)).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Conflict);
    assert_eq!(refusal.message, "machine 0 has units \"db/0\", \"db/1\" assigned");
    let answer = world.run(remove(Some(Force { max_wait: 60 }))).unwrap();
    assert!(matches!(answer, Answer::Removal { gone: false, .. }));
    world.terminate("db/0").unwrap();
    assert!(world.state().machine(&MachineId(0)).is_some());
    world.advance(60);
    world.settle();
    assert!(!world.has_unit("db/1"), "nobody waits for its agent any longer");
    assert!(world.state().machine(&MachineId(0)).is_none());
}

#[test]
fn numbers_of_machines_are_not_reused() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    world.run(Command::RemoveUnit { unit: unit("db/0"), force: None, storage: Default::default() }).unwrap();
    add(&mut world, 1, vec![]);
    assert_eq!(world.unit("db/1").machine, Some(MachineId(1)));
}
