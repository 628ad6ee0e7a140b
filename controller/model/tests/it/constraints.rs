//! Constraints: the placement of new units, and retries.

use periapt_host_api::{
    ErrorCode, Refusal,
    agent::Register,
    budget::BudgetKey,
    command::{Caller, Command, Deploy},
    constraints::{Constraints, Limited},
    status::AgentStatus,
};
use periapt_model::{Input, WorkSchedule, due_work};

use crate::world::{DB, LOGGING, World, deploy_command, unit};

/// Returns a world with `a1` (tags `ssd` and `shared`, zone `a`) and `a2` (tag `ssd`, zone `b`).
fn world() -> World {
    let mut world = World::new();
    world.agent("a2");
    describe(&mut world, "a1", &["ssd", "shared"], "a");
    describe(&mut world, "a2", &["ssd"], "b");
    world
}

fn describe(world: &mut World, name: &str, tags: &[&str], zone: &str) {
    let agent: periapt_host_api::AgentName = name.parse().unwrap();
    let host = world.root.agent(&agent).unwrap().host.clone();
    let tags = tags.iter().map(|tag| tag.parse().unwrap()).collect();
    let register = Register { tags, availability_zone: zone.to_owned(), ..host };
    world.ask(&Caller::Agent(agent.clone()), &Input::Register(agent, register)).unwrap();
}

fn asked(text: &str) -> Constraints {
    Constraints::parse([text]).unwrap()
}

fn constrain(world: &mut World, text: &str) -> Result<(), Refusal> {
    let (application, constraints) = ("db".parse().unwrap(), asked(text));
    world.run(Command::SetConstraints { application, constraints }).map(|_| ())
}

fn add(world: &mut World, count: u32) {
    let (application, placement) = ("db".parse().unwrap(), vec![]);
    world.run(Command::AddUnits { application, count, placement, attach_storage: vec![] }).unwrap();
    world.settle();
}

#[test]
fn new_units_go_to_agents_that_meet_the_constraints() {
    let mut world = world();
    world.deploy_db("db", 0);
    constrain(&mut world, "tags=ssd,^shared").unwrap();
    add(&mut world, 2);
    assert_eq!([world.agent_of("db/0"), world.agent_of("db/1")], ["a2", "a2"]);
    constrain(&mut world, "zones=a").unwrap();
    add(&mut world, 1);
    assert_eq!(world.agent_of("db/2"), "a1");
    assert_eq!(world.agent_of("db/0"), "a2", "what is placed stays");
    // The model's constraints apply where the application has none.
    world.run(Command::SetModelConstraints { constraints: asked("tags=^shared zones=b") }).unwrap();
    add(&mut world, 1);
    assert_eq!(world.unit("db/3").machine, None, "in zone a, and without the tag shared");
    assert_eq!(
        world.unit("db/3").agent_status.message,
        "waiting for an agent: none that is connected meets the constraints tags=^shared zones=a"
    );
    constrain(&mut world, "").unwrap();
    world.settle();
    assert_eq!(world.agent_of("db/3"), "a2", "tried again without being asked");
}

#[test]
fn mem_is_the_bound_of_hooks_under_jujus_name() {
    let mut world = world();
    let charm = world.upload(DB);
    let Command::Deploy(deploy) = deploy_command(charm, "db", 0) else { panic!("a deploy is one") };
    let wide = Deploy { constraints: asked("mem=128M"), ..deploy };
    let config = [("hook-memory-limit".to_owned(), "64M".to_owned())].into();
    let refusal = world.run(Command::Deploy(Deploy { config, ..wide.clone() })).unwrap_err();
    assert!(refusal.message.contains("are the same thing, and differ"), "{}", refusal.message);
    world.run(Command::Deploy(wide)).unwrap();
    let memory = |world: &World| world.application("db").budgets.get(BudgetKey::HookMemoryLimit);
    assert_eq!(memory(&world), Some(128 << 20));
    constrain(&mut world, "tags=ssd").unwrap();
    assert_eq!(memory(&world), None, "what is not named is not asked for any more");
    world.run(Command::SetModelConstraints { constraints: asked("mem=64M") }).unwrap();
    assert_eq!(world.state().config().budgets.value(BudgetKey::HookMemoryLimit), 64 << 20);
}

#[test]
fn constraints_that_no_sandbox_meets_are_kept_and_place_nothing() {
    let mut world = world();
    let charm = world.upload(DB);
    let Command::Deploy(deploy) = deploy_command(charm, "db", 1) else { panic!("a deploy is one") };
    let constraints = asked("mem=8G root-disk=20G virt-type=virtual-machine");
    world.run(Command::Deploy(Deploy { constraints: constraints.clone(), ..deploy })).unwrap();
    world.settle();
    assert!(world.unit("db/0").machine.is_some(), "they keep no unit from its place");
    let shown = |world: &World| {
        let application = world.application("db");
        Constraints::of(
            &application.constraints,
            &application.kept_constraints,
            &application.budgets,
            Limited::Hooks,
        )
    };
    assert_eq!(shown(&world), constraints);
    assert_eq!(world.application("db").budgets.get(BudgetKey::HookMemoryLimit), Some(1 << 30));
    constrain(&mut world, "instance-type=m5.large").unwrap();
    assert_eq!(shown(&world).to_string(), "instance-type=m5.large", "all others are asked no more");
    world.run(Command::SetModelConstraints { constraints: constraints.clone() }).unwrap();
    let model = world.state().model();
    assert_eq!(model.kept_constraints, constraints.kept);
}

#[test]
fn constraints_that_cannot_be_are_refused() {
    let mut world = world();
    world.deploy_db("db", 0);
    let constraints = Constraints { mem: Some(1), ..Constraints::default() };
    let refusal =
        world.run(Command::SetConstraints { application: "db".parse().unwrap(), constraints }).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::BadRequest);
    assert!(refusal.message.contains("hook-memory-limit expected a size"), "{}", refusal.message);
    let charm = world.upload(LOGGING);
    world.deploy(charm, "logging", 0);
    let (application, constraints) = ("logging".parse().unwrap(), asked("tags=ssd"));
    let refusal = world.run(Command::SetConstraints { application, constraints }).unwrap_err();
    assert!(refusal.message.starts_with("constraints do not apply to subordinate"), "{}", refusal.message);
}

#[test]
fn a_unit_without_a_machine_is_tried_again_when_an_operator_asks() {
    // P-2
    let mut world = world();
    world.deploy_db("db", 1);
    let retry = |unit_name: &str| Command::RetryProvisioning { unit: unit(unit_name) };
    let refusal = world.run(retry("db/0")).unwrap_err();
    assert_eq!(refusal.message, "cannot retry provisioning of unit \"db/0\": it has machine 0");
    constrain(&mut world, "tags=gpu").unwrap();
    add(&mut world, 1);
    assert_eq!(world.unit("db/1").agent_status.status, AgentStatus::Error);
    assert!(due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default()).0.is_empty());
    world.run(retry("db/1")).unwrap();
    assert!(
        !due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default()).0.is_empty(),
        "it is tried at once"
    );
    world.settle();
    assert_eq!(world.unit("db/1").agent_status.status, AgentStatus::Error, "and told again why not");
}
