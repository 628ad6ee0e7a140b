//! Units whose agent is gone go on with another agent.

use periapt_host_api::{
    ErrorCode, MachineId,
    agent::{LeaseClaim, RunnerCommand},
    command::{Command, Deploy, Placement, RefreshWith},
    constraints::Constraints,
    timing::{FAILOVER_AFTER, LEASE_SECONDS},
};
use periapt_model::{WorkSchedule, WorkerCommand, due_work};

use crate::world::{APP, DB, World, deploy_command, on_machine, unit};

/// The seconds after which units go elsewhere.
const AFTER: u32 = FAILOVER_AFTER.as_secs() as u32;

/// Returns a world with a second agent, `a2`.
fn world() -> World {
    let mut world = World::new();
    world.agent("a2");
    world
}

/// Cuts `a1` off for so many seconds, and does the due work.
fn cut_off(world: &mut World, seconds: u32) {
    world.work(WorkerCommand::AgentDisconnected("a1".parse().unwrap()));
    world.advance(seconds);
    world.settle();
}

fn deploy_at(world: &mut World, name: &str, placement: Vec<Placement>) {
    let charm = world.upload(DB);
    let Command::Deploy(deploy) = deploy_command(charm, name, 1) else { panic!("no deploy") };
    world.run(Command::Deploy(Deploy { placement, ..deploy })).unwrap();
    world.settle();
}

#[test]
fn units_go_on_with_another_agent_once_theirs_is_gone_and_nothing_of_them_is_lost() {
    let mut world = world();
    world.deploy_db("db", 2);
    assert_eq!([world.agent_of("db/0"), world.agent_of("db/1")], ["a1", "a2"]);
    world.start("db/0");
    let before = world.unit("db/0").record.clone();
    let late = world.commit_of("db/0");
    cut_off(&mut world, AFTER - 1);
    assert_eq!(world.agent_of("db/0"), "a1");
    let (none, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert_eq!((none, wake), (vec![], Some(world.now + std::time::Duration::from_secs(1))));
    world.advance(1);
    world.settle();
    assert_eq!([world.agent_of("db/0"), world.agent_of("db/1")], ["a2", "a2"]);
    assert_eq!(world.unit("db/0").machine, Some(MachineId(0)), "its machine has moved");
    assert_eq!(world.unit("db/0").record, before);
    let sees = |agent: &str| world.view(agent).units.contains_key(&unit("db/0"));
    assert!(sees("a2") && !sees("a1"));

    // The agent was only cut off, and tells what its hook did.
    let refusal = world.runner_call("a1", RunnerCommand::Commit(Box::new(late))).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::PermissionDenied);
    world.work(WorkerCommand::AgentConnected("a1".parse().unwrap()));
    world.settle();
    assert_eq!(world.agent_of("db/0"), "a2", "it does not come back by itself");
    world.commit("db/0", |_| {}).unwrap();
}

#[test]
fn an_agent_that_is_back_in_time_keeps_its_units() {
    let mut world = world();
    world.deploy_db("db", 1);
    cut_off(&mut world, AFTER - 1);
    world.work(WorkerCommand::AgentConnected("a1".parse().unwrap()));
    world.advance(AFTER);
    world.settle();
    assert_eq!(world.agent_of("db/0"), "a1");
}

#[test]
fn a_clock_that_is_set_moves_no_unit_and_keeps_none() {
    let mut world = world();
    world.deploy_db("db", 1);
    cut_off(&mut world, 1);
    let day = jiff::SignedDuration::from_hours(24);
    for by in [day, -day, -day] {
        world.now += by;
        world.settle();
        assert_eq!(world.agent_of("db/0"), "a1", "{by}");
    }
    world.advance(AFTER - 1);
    world.settle();
    assert_eq!(world.agent_of("db/0"), "a2");
}

#[test]
fn a_controller_counts_anew_after_its_start() {
    let mut world = world();
    world.deploy_db("db", 1);
    cut_off(&mut world, AFTER - 1);
    // The monotonic clock of the new process has another start.
    world.lease_now_ms = 7;
    world.root = world.root.restart(world.now, world.lease_now_ms);
    world.work(WorkerCommand::AgentConnected("a2".parse().unwrap()));
    world.advance(AFTER - 1);
    world.settle();
    assert_eq!(world.agent_of("db/0"), "a1");
    world.advance(1);
    world.settle();
    assert_eq!(world.agent_of("db/0"), "a2");
}

#[test]
fn a_model_says_after_which_time_its_units_go_elsewhere_or_that_they_stay() {
    let mut world = World::new();
    let set = |world: &mut World, after: &str| {
        let set = [("agent-failover-after".to_owned(), after.to_owned())].into();
        world.run(Command::SetModelConfig { set, reset: vec![] }).unwrap();
    };
    world.deploy_db("db", 1);
    set(&mut world, "5m");
    let other = world.other_model("n", &["a1"]);
    world.within(other, |world| {
        world.deploy_db("db", 1);
        set(world, "never");
    });
    world.agent("a2");
    world.within(other, |world| world.attach("a2"));
    let agents = |world: &mut World| {
        [world.agent_of("db/0"), world.within(other, |world| world.agent_of("db/0"))].join(" ")
    };
    cut_off(&mut world, 299);
    assert_eq!(agents(&mut world), "a1 a1");
    let (none, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert_eq!((none, wake), (vec![], Some(world.now + std::time::Duration::from_secs(1))));
    world.advance(1);
    world.settle();
    assert_eq!(agents(&mut world), "a2 a1");
    world.advance(1_000_000);
    world.settle();
    assert_eq!(agents(&mut world), "a2 a1");
    world.within(other, |world| set(world, "90s"));
    world.settle();
    assert_eq!(agents(&mut world), "a2 a2");
}

#[test]
fn what_is_bound_to_its_host_stays() {
    let mut world = world();
    let charm = world.upload(&format!("{DB}storage:\n  data: {{type: filesystem}}\n"));
    world.deploy(charm, "stored", 1);
    deploy_at(&mut world, "named", vec![Placement::Agent("a1".parse().unwrap())]);
    // A unit beside one that is bound stays with it.
    deploy_at(&mut world, "beside", on_machine(1));
    let bound = ["stored/0", "named/0", "beside/0"];
    assert_eq!(bound.map(|unit| world.agent_of(unit)), ["a1", "a1", "a1"]);
    cut_off(&mut world, 10 * AFTER);
    assert_eq!(bound.map(|unit| world.agent_of(unit)), ["a1", "a1", "a1"]);
}

#[test]
fn units_with_workloads_stay_whichever_charm_declares_them() {
    let served = format!("{DB}containers:\n  web: {{}}\n");
    for (runs, next, stays) in
        [(&*served, None, true), (&*served, Some(DB), true), (DB, Some(&*served), true), (DB, None, false)]
    {
        let mut world = World::new();
        let charm = world.upload(runs);
        world.deploy(charm, "db", 1);
        world.start("db/0");
        if let Some(next) = next {
            // The unit has not taken it yet.
            let (charm, application) = (world.upload(next), "db".parse().unwrap());
            let with = RefreshWith::default();
            world.run(Command::Refresh { application, charm, force: false, with }).unwrap();
        }
        world.agent("a2");
        cut_off(&mut world, 10 * AFTER);
        assert_eq!(world.agent_of("db/0") == "a1", stays, "{runs} and {next:?}");
    }
}

#[test]
fn a_machine_goes_with_all_its_units_to_an_agent_that_suits_them() {
    let mut world = World::new();
    let charm = world.upload(APP);
    world.deploy(charm, "app", 1);
    world.deploy_logging("logging");
    let info = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", info).unwrap();
    assert_eq!(world.agent_of("logging/0"), "a1");
    let constraints = Constraints::parse(["zones=b"]).unwrap();
    world.run(Command::SetConstraints { application: "app".parse().unwrap(), constraints }).unwrap();
    world.agent("a2");
    cut_off(&mut world, AFTER);
    assert_eq!(world.agent_of("app/0"), "a1", "a2 is not in that zone");
    let constraints = Constraints::default();
    world.run(Command::SetConstraints { application: "app".parse().unwrap(), constraints }).unwrap();
    world.settle();
    assert_eq!([world.agent_of("app/0"), world.agent_of("logging/0")], ["a2", "a2"]);
}

#[test]
fn units_of_all_models_are_spread_over_the_agents_that_are_left() {
    let mut world = world();
    world.work(WorkerCommand::AgentDisconnected("a2".parse().unwrap()));
    world.advance(60);
    world.deploy_db("db", 60);
    let other = world.other_model("n", &["a1", "a2"]);
    world.within(other, |world| drop(world.deploy_db("db", 10)));
    world.work(WorkerCommand::AgentConnected("a2".parse().unwrap()));
    world.agent("a3");
    world.within(other, |world| world.attach("a3"));
    cut_off(&mut world, AFTER);
    let agents = |state: &periapt_model::ModelState| -> Vec<usize> {
        ["a1", "a2", "a3"].map(|agent| state.unit_count_of(&agent.parse().unwrap())).to_vec()
    };
    let (here, there) = (agents(world.state()), agents(world.root.model(&other).unwrap()));
    assert_eq!((here[0], there[0]), (0, 0));
    assert_eq!(here[1] + there[1], here[2] + there[2], "{here:?} {there:?}");
}

#[test]
fn a_unit_that_led_leads_on_elsewhere_only_once_its_lease_there_has_lapsed() {
    let mut world = world();
    world.deploy_db("db", 1);
    world.start("db/0");
    world.claim("db/0", LEASE_SECONDS).unwrap();
    cut_off(&mut world, AFTER);
    let (model, application) = (world.model, "db".parse().unwrap());
    assert!(!world.root.lease_holds(&model, &application, world.lease_now_ms));
    assert_eq!(world.agent_of("db/0"), "a2");
    world.claim("db/0", LEASE_SECONDS).unwrap();
    // The agent that was cut off claims for a unit that it no longer has.
    let late = LeaseClaim { unit: unit("db/0"), application, seconds: LEASE_SECONDS };
    let refusal = world.runner_call("a1", RunnerCommand::Claim(late)).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::PermissionDenied);
}
