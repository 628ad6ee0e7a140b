//! Deployment, unit numbers, charm revisions.

use periapt_host_api::{
    Digest, ErrorCode, RelationId,
    command::{Answer, Command, Deploy, Placement},
    status::{AgentStatus, Life, WorkloadStatus},
};

use crate::world::{DB, World, deploy_command, on_machine};

#[test]
fn deploy_makes_application_peer_relations_units_and_machines() {
    let mut world = World::new();
    let units = world.deploy_app("app", 2);
    assert_eq!(units.iter().map(ToString::to_string).collect::<Vec<_>>(), ["app/0", "app/1"]);
    // peer relations take relation ids, too.
    assert!(world.relation(RelationId(0)).is_peer());
    assert_ne!(world.unit("app/0").machine, world.unit("app/1").machine);
    assert_eq!(world.unit("app/0").agent_status.status, AgentStatus::Allocating);
    assert_eq!(world.unit("app/0").workload_status.status, WorkloadStatus::Waiting);
}

#[test]
fn the_name_is_the_charms_unless_another_is_given() {
    let mut world = World::new();
    let charm = world.upload(DB);
    let Command::Deploy(deploy) = deploy_command(charm, "x", 1) else { unreachable!() };
    let answer = world.run(Command::Deploy(Deploy { application: None, ..deploy })).unwrap();
    assert!(matches!(answer, Answer::Application { name, .. } if name.as_str() == "db"));
}

#[test]
fn many_units_are_made_in_steps_and_answered_at_once() {
    let mut world = World::new();
    let charm = world.upload(DB);
    let answer = world.run(deploy_command(charm, "db", 205)).unwrap();
    let Answer::Application { units, .. } = answer else { unreachable!() };
    assert_eq!(units.len(), 205);
    world.settle();
    assert!(units.iter().all(|unit| world.unit(&unit.to_string()).machine.is_some()));
    assert_eq!(world.state().work().count(), 0);
}

#[test]
fn units_that_were_not_yet_made_are_not_made_after_the_application_was_removed() {
    let mut world = World::new();
    let charm = world.upload(DB);
    world.run(deploy_command(charm, "db", 205)).unwrap();
    world
        .run(Command::RemoveApplication {
            application: "db".parse().unwrap(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    world.settle();
    assert!(!world.has_application("db"));
    // Numbers are never reused while the model lives.
    let units = world.deploy(charm, "db", 1);
    assert_eq!(units[0].number(), 205);
    world.settle();
    assert_eq!(world.state().unit_count(), 1);
}

#[test]
fn charm_revisions_of_a_name_rise_and_are_never_reused() {
    // M-13, M-15
    let mut world = World::new();
    let first = world.upload(DB);
    let second = world.upload(&format!("{DB}\n# another"));
    world.deploy(first, "one", 0);
    world.deploy(second, "two", 0);
    let revision = |world: &World, charm: &Digest| world.state().charm(charm).map(|charm| charm.revision);
    assert_eq!((revision(&world, &first), revision(&world, &second)), (Some(0), Some(1)));
    world
        .run(Command::RemoveApplication {
            application: "one".parse().unwrap(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    assert_eq!(revision(&world, &first), None);
    world.deploy(first, "three", 0);
    assert_eq!(revision(&world, &first), Some(2));
}

#[test]
fn what_cannot_be_deployed_is_refused_before_anything_is_written() {
    let mut world = World::new();
    let charm = world.upload_app();
    let logging = world.upload(crate::world::LOGGING);
    world.deploy(charm, "app", 1);
    let place = |placement: Vec<Placement>, units| {
        let Command::Deploy(deploy) = deploy_command(charm, "new", units) else { unreachable!() };
        Command::Deploy(Deploy { placement, ..deploy })
    };
    let cases = [
        (
            deploy_command(charm, "app", 1),
            ErrorCode::AlreadyExists,
            "cannot add application \"app\": application already exists",
        ),
        (
            deploy_command(logging, "logging", 1),
            ErrorCode::BadRequest,
            "cannot add application \"logging\": subordinate application must be deployed without units",
        ),
        (place(on_machine(7), 1), ErrorCode::NotFound, "cannot add application \"new\": machine 7 not found"),
        (
            place(vec![Placement::Agent("nobody".parse().unwrap())], 1),
            ErrorCode::NotFound,
            "cannot add application \"new\": agent \"nobody\" not found",
        ),
        (
            place([on_machine(0), on_machine(0)].concat(), 1),
            ErrorCode::BadRequest,
            "cannot add application \"new\": 2 placements for 1 units: at most one each",
        ),
        (
            deploy_command(charm, "new", 10_001),
            ErrorCode::QuotaExceeded,
            "cannot add application \"new\": 10001 units at once are too many, at most 10000 are allowed",
        ),
    ];
    for (command, code, message) in cases {
        let before = world.stored.clone();
        let refusal = world.run(command).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (code, message));
        assert_eq!(world.stored, before);
    }
    let unknown = world.run(deploy_command(Digest::of(b"x"), "new", 1)).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
}

#[test]
fn nothing_is_added_to_what_is_not_alive() {
    // L-6
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
        .run(Command::RemoveApplication {
            application: "app".parse().unwrap(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    assert_eq!(world.application("app").life, Life::Dying);
    let add = Command::AddUnits {
        application: "app".parse().unwrap(),
        count: 1,
        placement: vec![],
        attach_storage: vec![],
    };
    assert_eq!(world.run(add).unwrap_err().code, ErrorCode::NotAlive);
    world.deploy_db("db", 1);
    let refusal = world.integrate("app", "db").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NotAlive);
    assert_eq!(refusal.message, "cannot add relation \"app:db db:server\": application \"app\" is not alive");
}
