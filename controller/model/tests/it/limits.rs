//! Limits on workloads, and the quotas of a model.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Digest, ErrorCode, Level, Refusal, Timestamp, UnitName,
    access::ModelAccess,
    agent::RunnerCommand,
    budget::{BudgetKey, BudgetSettings},
    command::{Caller, Command, ControllerCommand, Deploy, RefreshWith},
    constraints::{Constraints, Limited},
    container::{ContainerReport, ContainerState, ContainerUsage, PodState, UnitTraffic, WorkloadsReport},
    usage::WorkloadUsage,
};
use periapt_model::{EntityKey, Input, RefreshRequest, Root, entity::Controller, model_usage};

use crate::world::{World, deploy_command};

/// A charm with two containers.
const CHARM: &str = "{name: web, summary: s, description: d, containers: {web: {}, db: {}}}";

const MEMORY: BudgetKey = BudgetKey::WorkloadMemoryLimit;
const CPU: BudgetKey = BudgetKey::WorkloadCpuLimit;

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn of_model(world: &mut World, pairs: &[(&str, &str)]) -> Result<(), Refusal> {
    world.run(Command::SetModelConfig { set: texts(pairs), reset: vec![] }).map(drop)
}

fn of_all(world: &mut World, pairs: &[(&str, &str)]) -> Result<(), Refusal> {
    world.control(ControllerCommand::SetModelDefaults { set: texts(pairs), reset: vec![] }).map(drop)
}

fn of_web(world: &mut World, pairs: &[(&str, &str)], reset: &[&str]) -> Result<(), Refusal> {
    let reset = reset.iter().map(ToString::to_string).collect();
    let application = "web".parse().unwrap();
    world.run(Command::SetConfig { application, set: texts(pairs), reset }).map(drop)
}

fn constrain(world: &mut World, text: &str) -> Result<(), Refusal> {
    let (application, constraints) = ("web".parse().unwrap(), Constraints::parse([text]).unwrap());
    world.run(Command::SetConstraints { application, constraints }).map(drop)
}

fn deployed(units: u32) -> World {
    let mut world = World::new();
    let charm = world.upload(CHARM);
    world.deploy(charm, "web", units);
    world.settle();
    world
}

#[test]
fn limits_reach_agents_apart_from_the_budgets_of_hooks() {
    let mut world = deployed(1);
    of_model(&mut world, &[("workload-memory-limit", "2G"), ("workload-cpu-limit", "50")]).unwrap();
    of_web(&mut world, &[("workload-memory-limit", "64M"), ("hook-timeout", "10s")], &[]).unwrap();
    let told = |world: &World| {
        let view = world.view("a1");
        let model = view.model.clone().unwrap();
        let name: ApplicationName = "web".parse().unwrap();
        let web = view.applications.get(&name).unwrap().clone();
        // An agent of an earlier release reads these, and would not know the keys.
        for budgets in [&model.config.budgets, &web.budgets] {
            assert!(budgets.0.keys().all(|key| !key.is_of_workloads()), "{budgets:?}");
        }
        assert_eq!(view.budgets(&web.name).value(BudgetKey::HookTimeout), 10);
        web.workload_limits.or(&model.workload_limits)
    };
    assert_eq!(told(&world), BudgetSettings([(MEMORY, 64 << 20), (CPU, 50)].into()));
    of_web(&mut world, &[], &["workload-memory-limit"]).unwrap();
    assert_eq!(told(&world), BudgetSettings([(MEMORY, 2 << 30), (CPU, 50)].into()));
    let refused = of_web(&mut world, &[("workload-memory-limit", "1M")], &[]).unwrap_err();
    assert_eq!(refused.message, "workload-memory-limit expected a size from 16M to 1024G, got \"1M\"");
}

#[test]
fn constraints_limit_workloads_where_there_are_some() {
    let mut world = World::new();
    let charm = world.upload(CHARM);
    let Command::Deploy(deploy) = deploy_command(charm, "web", 0) else { panic!("a deploy is one") };
    let constraints = Constraints::parse(["mem=4G cpu-power=150"]).unwrap();
    let wide = Deploy { constraints: constraints.clone(), ..deploy };
    let config = texts(&[("workload-memory-limit", "64M")]);
    let refused = world.run(Command::Deploy(Deploy { config, ..wide.clone() })).unwrap_err();
    assert!(
        refused.message.contains("mem and the setting workload-memory-limit are the same thing, and differ"),
        "{refused}"
    );
    world.run(Command::Deploy(wide)).unwrap();
    let limits = |world: &World| world.application("web").budgets.clone();
    assert_eq!(limits(&world), BudgetSettings([(MEMORY, 4 << 30), (CPU, 150)].into()));
    let shown = |world: &World| {
        let web = world.application("web");
        Constraints::of(&web.constraints, &web.kept_constraints, &web.budgets, Limited::Workloads)
    };
    assert_eq!(shown(&world), constraints);
    of_web(&mut world, &[("workload-cpu-limit", "20"), ("hook-memory-limit", "64M")], &[]).unwrap();
    assert_eq!(shown(&world).to_string(), "mem=4096M cpu-power=20");
    constrain(&mut world, "mem=64M").unwrap();
    let expected = [(MEMORY, 64 << 20), (BudgetKey::HookMemoryLimit, 64 << 20)];
    assert_eq!(limits(&world), BudgetSettings(expected.into()), "hooks keep their own limit");
    let refused = constrain(&mut world, "mem=8M").unwrap_err();
    assert!(refused.message.contains("workload-memory-limit expected a size from 16M"), "{refused}");

    // Those of a model hold for both.
    let constraints = Constraints::parse(["mem=32M"]).unwrap();
    world.run(Command::SetModelConstraints { constraints }).unwrap();
    let budgets = &world.state().config().budgets;
    assert_eq!([MEMORY, BudgetKey::HookMemoryLimit].map(|key| budgets.value(key)), [32 << 20, 32 << 20]);
}

#[test]
fn a_model_has_no_more_workloads_and_no_more_memory_than_its_quotas() {
    let mut world = deployed(1);
    let add = |world: &mut World, count| {
        let (application, placement) = ("web".parse().unwrap(), vec![]);
        world.run(Command::AddUnits { application, count, placement, attach_storage: vec![] }).map(drop)
    };
    of_model(&mut world, &[("workload-quota", "6")]).unwrap();
    let refused = add(&mut world, 3).unwrap_err();
    assert_eq!(refused.code, ErrorCode::QuotaExceeded);
    assert!(
        refused.message.contains("would have 8 containers and WebAssembly workloads, and may have 6"),
        "{refused}"
    );
    add(&mut world, 2).unwrap();
    let charm = world.upload(CHARM);
    assert_eq!(world.run(deploy_command(charm, "more", 1)).unwrap_err().code, ErrorCode::QuotaExceeded);
    world.run(deploy_command(charm, "none", 0)).unwrap();

    // Units without workloads are not counted, and what is there already stays.
    world.deploy_db("plain", 5);
    of_model(&mut world, &[("workload-quota", "unlimited"), ("workload-memory-quota", "5G")]).unwrap();
    assert_eq!(add(&mut world, 1).unwrap_err().code, ErrorCode::QuotaExceeded);
    let refused = of_web(&mut world, &[("workload-memory-limit", "2G")], &[]).unwrap_err();
    let text = "the workloads of the model would have 12288M of memory by their limits, and may have 5120M";
    assert!(refused.message.starts_with(text), "{refused}");
    assert_eq!(constrain(&mut world, "mem=2G").unwrap_err().code, ErrorCode::QuotaExceeded);
    of_web(&mut world, &[("workload-memory-limit", "512M")], &[]).unwrap();
    add(&mut world, 2).unwrap();
    assert_eq!(add(&mut world, 1).unwrap_err().code, ErrorCode::QuotaExceeded);
}

#[test]
fn a_refresh_adds_no_workloads_beyond_a_quota_and_may_take_some_away() {
    let mut world = deployed(2);
    let of_containers =
        |names: &str| format!("{{name: web, summary: s, description: d, containers: {{{names}}}}}");
    let wider = world.upload(&of_containers("web: {}, db: {}, cache: {}"));
    let narrower = world.upload(&of_containers("web: {}"));
    let refresh = |world: &mut World, charm, force| {
        let (application, with) = ("web".parse().unwrap(), RefreshWith::default());
        world.run(Command::Refresh { application, charm, force, with }).map(drop)
    };
    of_web(&mut world, &[("workload-memory-limit", "1G")], &[]).unwrap();
    of_model(&mut world, &[("workload-quota", "5")]).unwrap();
    let stored = world.stored.clone();
    for force in [false, true] {
        let refused = refresh(&mut world, wider, force).unwrap_err();
        assert_eq!(refused.code, ErrorCode::QuotaExceeded);
        assert!(
            refused.message.contains("would have 6 containers and WebAssembly workloads, and may have 5"),
            "{refused}"
        );
        let request = RefreshRequest { application: "web".parse().unwrap(), charm: wider, force };
        assert_eq!(world.plan(&request).unwrap().refusal, Some(refused));
    }
    assert_eq!(world.stored, stored);

    // It leaves more than the quota, which is lower by now, and less than there was.
    of_model(&mut world, &[("workload-quota", "1")]).unwrap();
    refresh(&mut world, narrower, false).unwrap();
    assert_eq!(world.application("web").charm.digest, narrower);
    assert_eq!(refresh(&mut world, wider, false).unwrap_err().code, ErrorCode::QuotaExceeded);

    of_model(&mut world, &[("workload-quota", "unlimited"), ("workload-memory-quota", "1G")]).unwrap();
    let refused = refresh(&mut world, wider, false).unwrap_err();
    let text = "the workloads of the model would have 6144M of memory by their limits, and may have 1024M";
    assert!(refused.message.starts_with(text), "{refused}");
    of_model(&mut world, &[("workload-memory-quota", "6G")]).unwrap();
    refresh(&mut world, wider, false).unwrap();
}

#[test]
fn units_that_are_still_to_be_made_count_for_the_quota() {
    let mut world = deployed(0);
    world.checked = false;
    of_model(&mut world, &[("workload-quota", "1000")]).unwrap();
    let add = |world: &mut World, count| {
        let (application, placement) = ("web".parse().unwrap(), vec![]);
        world.run(Command::AddUnits { application, count, placement, attach_storage: vec![] })
    };
    // One commit makes fifty of them.
    add(&mut world, 400).unwrap();
    assert!(world.state().unit_count() < 400);
    let refused = add(&mut world, 200).unwrap_err();
    assert!(refused.message.contains("would have 1200 containers"), "{refused}");
    world.settle();
    assert_eq!(world.state().unit_count(), 400);
    add(&mut world, 100).unwrap();
}

#[test]
fn quotas_are_set_by_administrators_of_the_controller_alone() {
    let mut world = deployed(1);
    let jane = world.add_user("jane");
    let grant = Command::GrantModel { user: "jane".parse().unwrap(), access: ModelAccess::Admin };
    world.run(grant).unwrap();
    let mut set = |caller: &Caller, key: &str, reset: &[&str]| {
        let set = if reset.is_empty() { texts(&[(key, "unlimited")]) } else { BTreeMap::new() };
        let reset = reset.iter().map(ToString::to_string).collect();
        world.ask(caller, &Input::Model(world.model, Command::SetModelConfig { set, reset }))
    };
    for refused in [set(&jane, "workload-quota", &[]), set(&jane, "", &["workload-memory-quota"])] {
        let refused = refused.unwrap_err();
        assert_eq!(refused.code, ErrorCode::PermissionDenied);
        assert!(
            refused.message.contains("administrators of the controller alone set workload-"),
            "{refused}"
        );
    }
    // What the controller sets for all models holds in this one.
    let set = texts(&[("workload-quota", "2")]);
    world.control(ControllerCommand::SetModelDefaults { set, reset: vec![] }).unwrap();
    let (application, placement) = ("web".parse().unwrap(), vec![]);
    let more = Command::AddUnits { application, count: 1, placement, attach_storage: vec![] };
    assert_eq!(
        world.ask(&jane, &Input::Model(world.model, more)).unwrap_err().code,
        ErrorCode::QuotaExceeded
    );
}

#[test]
fn limits_are_refused_until_the_programs_of_all_controllers_know_them() {
    let mut world = deployed(1);
    let earlier = Controller { level: Level::FIRST, ..world.root.controller().unwrap().clone() };
    world.stored.insert(EntityKey::Controller, earlier.into());
    world.root = Root::from_entities(world.stored.clone(), world.root.revision()).unwrap();
    for refused in [
        of_web(&mut world, &[("workload-memory-limit", "64M")], &[]),
        of_model(&mut world, &[("workload-cpu-limit", "50")]),
        of_model(&mut world, &[("workload-quota", "5")]),
        of_all(&mut world, &[("workload-quota", "5")]),
    ] {
        assert_eq!(refused.unwrap_err().code, ErrorCode::NotSupported);
    }
    // A constraint keeps the meaning that it has for them.
    constrain(&mut world, "mem=64M cpu-power=50").unwrap();
    let expected = BudgetSettings([(BudgetKey::HookMemoryLimit, 64 << 20)].into());
    assert_eq!(world.application("web").budgets, expected);
}

#[test]
fn the_usage_of_workloads_is_what_agents_reported_last_and_the_sum_of_what_they_counted() {
    let mut world = World::new();
    let charm: Digest = world.upload(CHARM);
    world.deploy(charm, "web", 1);
    world.start("web/0");
    let incarnation = world.attach("a1");
    of_web(&mut world, &[("workload-memory-limit", "64M")], &[]).unwrap();
    assert!(model_usage(world.state()).workloads.is_none());
    let container = |usage| ContainerReport {
        driver: None,
        content: None,
        state: ContainerState::Starting,
        starts: 1,
        pod: PodState::default(),
        usage,
    };
    let used = ContainerUsage { memory: 5 << 20, cpu_ms: 700, storage: 3 };
    let containers =
        [("web".parse().unwrap(), container(Some(used))), ("db".parse().unwrap(), container(None))];
    let traffic = UnitTraffic { connections: 1, received: 2, sent: 3 };
    let containers = containers.into();
    let report = Box::new(WorkloadsReport { containers, traffic, ..WorkloadsReport::default() });
    let tell = |world: &mut World, report| {
        let unit = "web/0".parse().unwrap();
        world.runner_call("a1", RunnerCommand::Workloads { unit, incarnation, report }).unwrap();
    };
    tell(&mut world, report.clone());
    let usage = model_usage(world.state());
    let mut expected = WorkloadUsage {
        containers: 2,
        memory_limit: 128 << 20,
        memory: 5 << 20,
        cpu_ms: 700,
        storage: 3,
        connections: 1,
        received: 2,
        sent: 3,
    };
    assert_eq!(usage.workloads, expected);
    let (web, unit): (ApplicationName, UnitName) = ("web".parse().unwrap(), "web/0".parse().unwrap());
    assert_eq!(usage.applications[&web].workloads[&unit], expected);

    // The agent starts again, and counts from zero.
    let next = WorkloadsReport { counted_since: Some(Timestamp::UNIX_EPOCH), ..*report };
    tell(&mut world, Box::new(next));
    (expected.cpu_ms, expected.connections, expected.received, expected.sent) = (1_400, 2, 4, 6);
    assert_eq!(model_usage(world.state()).applications[&web].workloads[&unit], expected);
    // What was counted stays, whatever the unit has no more.
    tell(&mut world, Box::default());
    let left =
        WorkloadUsage { cpu_ms: 1_400, connections: 2, received: 4, sent: 6, ..WorkloadUsage::default() };
    assert_eq!(model_usage(world.state()).workloads, left);
    let unit = "web/0".parse().unwrap();
    world.run(Command::RemoveUnit { unit, force: None, storage: Default::default() }).unwrap();
    world.terminate("web/0").unwrap();
    assert!(model_usage(world.state()).workloads.is_none());
}
