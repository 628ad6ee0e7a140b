//! The removal of units, applications and models (`docs/hook-model.md` 7.1).

use periapt_host_api::{
    ErrorCode, RelationId,
    agent::RunnerCommand,
    command::{Answer, Command, ControllerCommand, Force},
    event::Event,
    status::{AgentStatus, Life},
};

use periapt_model::{WorkSchedule, due_work};

use crate::world::{World, agent_status, on_machine, unit};

fn remove_unit(world: &mut World, name: &str, force: Option<Force>) -> Answer {
    world.run(Command::RemoveUnit { unit: unit(name), force, storage: Default::default() }).unwrap()
}

fn remove_application(world: &mut World, name: &str, force: Option<Force>) -> Answer {
    world
        .run(Command::RemoveApplication {
            application: name.parse().unwrap(),
            force,
            storage: Default::default(),
        })
        .unwrap()
}

#[test]
fn q04_a_unit_whose_agent_never_reported_goes_at_once() {
    // L-1
    let mut world = World::new();
    world.deploy_app("app", 2);
    assert_eq!(remove_unit(&mut world, "app/0", None), Answer::Removal { gone: true, waits_for: vec![] });
    assert!(!world.has_unit("app/0"));
    world.start("app/1");
    let waits_for = vec!["its agent to run its last hooks".to_owned()];
    assert_eq!(remove_unit(&mut world, "app/1", None), Answer::Removal { gone: false, waits_for });
    assert_eq!(world.unit("app/1").life, Life::Dying);
}

#[test]
fn a_unit_whose_charm_never_arrived_goes_at_once() {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.start("app/1");
    for name in ["app/0", "app/1"] {
        let unit = world.unit(name).name.clone();
        let incarnation = world.commit_of(name).incarnation;
        let away =
            agent_status(AgentStatus::Failed, "charm 0123abcd not available yet, retrying: it is damaged");
        let items = vec![world.item(name, away)];
        world.runner_call("a1", RunnerCommand::Early { unit, incarnation, items }).unwrap();
        assert_eq!(world.unit(name).agent_status.status, AgentStatus::Failed);
    }
    assert_eq!(remove_unit(&mut world, "app/0", None), Answer::Removal { gone: true, waits_for: vec![] });
    assert!(!world.has_unit("app/0"));
    // A unit that runs a charm, and waits for another, has its last hooks to run.
    remove_unit(&mut world, "app/1", None);
    assert_eq!(world.unit("app/1").life, Life::Dying);
}

#[test]
fn a_terminated_unit_is_gone_with_all_that_was_its_own() {
    // L-8, U-39
    let mut world = World::new();
    world.deploy_app("app", 2);
    let peers = RelationId(0);
    for name in ["app/0", "app/1"] {
        world.start(name);
        world.enter(name, peers).unwrap();
    }
    world.claim("app/0", 60).unwrap();
    let alive = world.terminate("app/0").unwrap_err();
    assert_eq!(alive.message, "cannot set unit \"app/0\" to dead: unit is alive");
    remove_unit(&mut world, "app/0", None);
    let mut last = world.commit_of("app/0");
    last.transitions.terminate = true;
    world.runner_call("a1", RunnerCommand::Commit(Box::new(last.clone()))).unwrap();
    assert!(!world.has_unit("app/0"));
    assert_eq!(world.state().members(&peers).count(), 1);
    assert!(world.application("app").leader.is_none());
    assert!(world.bag(peers, "app/0").is_some(), "R-15: former members stay readable");
    // The answer to the last commit may have been lost. Sent again, it changes nothing, and is refused as a commit of
    // another agent's unit is.
    let revision = world.root.revision();
    let again = world.runner_call("a1", RunnerCommand::Commit(Box::new(last))).unwrap_err();
    assert_eq!(again.code, ErrorCode::PermissionDenied);
    assert_eq!(world.root.revision(), revision);
    world.agent("a2");
    let mut foreign = world.commit_of("app/1");
    foreign.transitions.terminate = true;
    let foreign = world.runner_call("a2", RunnerCommand::Commit(Box::new(foreign))).unwrap_err();
    assert_eq!(again, foreign);
    assert!(world.has_unit("app/1"));
}

#[test]
fn q05_a_unit_with_a_subordinate_does_not_become_dead() {
    // R-18, F23
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    world.start("logging/0");
    remove_unit(&mut world, "app/0", None);
    assert_eq!(world.unit("logging/0").life, Life::Dying);
    let refusal = world.terminate("app/0").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Conflict);
    assert_eq!(refusal.message, "cannot set unit \"app/0\" to dead: unit has subordinates");
    assert!(world.status().applications["app"].units["app/0"].waits_for[0].contains("logging/0"));
    world.terminate("logging/0").unwrap();
    world.terminate("app/0").unwrap();
    assert!(!world.has_unit("app/0"));
    assert_eq!(world.state().machines().count(), 0);
}

#[test]
fn a_subordinate_is_removed_by_removing_its_relation() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    let refusal = world
        .run(Command::RemoveUnit { unit: unit("logging/0"), force: None, storage: Default::default() })
        .unwrap_err();
    assert!(
        refusal.message.starts_with("unit \"logging/0\" is a subordinate, to remove use remove-relation")
    );
}

#[test]
fn q07_an_application_with_units_is_dying_until_the_last_is_gone() {
    // L-2, R-10
    let mut world = World::new();
    world.deploy_app("app", 30);
    for number in 0..30 {
        world.start(&format!("app/{number}"));
    }
    assert!(matches!(remove_application(&mut world, "app", None), Answer::Removal { gone: false, .. }));
    assert_eq!(world.application("app").life, Life::Dying);
    world.settle();
    for number in 0..30 {
        let name = format!("app/{number}");
        assert_eq!(world.unit(&name).life, Life::Dying, "a cleanup destroys the units");
        assert!(world.has_application("app"));
        world.terminate(&name).unwrap();
    }
    assert!(!world.has_application("app"));
    assert!(world.state().relation(&RelationId(0)).is_none(), "its peers are gone, too");
}

#[test]
fn an_application_without_units_and_relations_goes_at_once() {
    let mut world = World::new();
    world.deploy_db("db", 0);
    assert_eq!(remove_application(&mut world, "db", None), Answer::Removal { gone: true, waits_for: vec![] });
}

#[test]
fn an_application_goes_with_its_last_relation_too() {
    //
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_db("db", 1);
    let id = world.integrate("app", "db").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    // No unit of db has ever reported, so they are removed at once; but the relation has a unit of app in scope.
    remove_application(&mut world, "db", None);
    world.settle();
    assert_eq!(world.state().units_of(&"db".parse().unwrap()).count(), 0);
    assert!(world.has_application("db"));
    world.leave("app/0", id).unwrap();
    assert!(!world.has_application("db"));
}

#[test]
fn a_forced_removal_goes_on_without_the_agent() {
    let mut world = World::new();
    world.deploy_app("app", 3);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    for number in 0..3 {
        let name = format!("app/{number}");
        world.start(&name);
        world.enter(&name, id).unwrap();
        world.start(&format!("logging/{number}"));
        world.enter(&format!("logging/{number}"), id).unwrap();
    }
    remove_application(&mut world, "app", Some(Force { max_wait: 30 }));
    world.settle();
    assert!(world.has_application("app"));
    world.advance(30);
    world.settle();
    assert!(!world.has_application("app"));
    assert_eq!(world.state().unit_count(), 0);
    assert_eq!(world.state().machines().count(), 0);
}

#[test]
fn force_may_follow_a_removal_that_hangs() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world.fail("app/0", Event::ConfigChanged);
    let answer = remove_unit(&mut world, "app/0", None);
    let waits_for = vec!["its failed hook to be resolved".to_owned()];
    assert_eq!(answer, Answer::Removal { gone: false, waits_for });
    remove_unit(&mut world, "app/0", Some(Force { max_wait: 0 }));
    world.settle();
    assert!(!world.has_unit("app/0"));
}

#[test]
fn a_unit_in_many_scopes_is_removed_in_steps() {
    let mut world = World::new();
    world.deploy_db("db", 1);
    world.start("db/0");
    let charm = world.upload_app();
    for number in 0..45 {
        let name = format!("app{number}");
        world.deploy(charm, &name, 0);
        let id = world.integrate(&name, "db").unwrap();
        world.enter("db/0", id).unwrap();
    }
    remove_unit(&mut world, "db/0", None);
    world.settle();
    let db = unit("db/0");
    let departing = world.state().scopes_of(&db).filter(|id| {
        world.state().membership(id, &db) == Some(periapt_host_api::view::Membership::Departing)
    });
    assert_eq!(departing.count(), 45);
    world.terminate("db/0").unwrap();
    assert_eq!(world.unit("db/0").life, Life::Dead);
    world.settle();
    assert!(!world.has_unit("db/0"));
}

#[test]
fn a_destroyed_model_goes_when_all_in_it_is_gone() {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.deploy_db("db", 1);
    world.integrate("app", "db").unwrap();
    world.start("app/0");
    let model = world.model;
    let answer =
        world.control(ControllerCommand::DestroyModel { model, force: None, storage: None }).unwrap();
    assert!(matches!(answer, Answer::Removal { gone: false, .. }));
    let refusal = world.integrate("app", "db").unwrap_err();
    assert_eq!(refusal.message, "model \"m\" is no longer alive");
    world.settle();
    assert_eq!(world.status().model.model_status.current, "destroying");
    world.terminate("app/0").unwrap();
    world.settle();
    assert!(world.root.model(&model).is_none());
    let left = world.stored.keys().filter(|key| matches!(key, periapt_model::EntityKey::InModel(..)));
    assert_eq!(left.count(), 0, "nothing is left in the store");
    world.add_model("m");
}

#[test]
fn a_model_is_destroyed_by_force_while_its_agents_are_away() {
    let mut world = World::new();
    world.deploy_app("app", 12);
    for number in 0..12 {
        world.start(&format!("app/{number}"));
        world.enter(&format!("app/{number}"), RelationId(0)).unwrap();
    }
    let model = world.model;
    world
        .control(ControllerCommand::DestroyModel {
            model,
            force: Some(Force { max_wait: 10 }),
            storage: None,
        })
        .unwrap();
    world.settle();
    world.advance(10);
    world.settle();
    assert!(world.root.model(&model).is_none());
}

#[test]
fn model_names_are_unique_per_owner() {
    let mut world = World::new();
    let again = ControllerCommand::add_model("m".parse().unwrap());
    assert_eq!(world.control(again.clone()).unwrap_err().code, ErrorCode::AlreadyExists);
    let other = world.superuser("another");
    world.ask(&other, &periapt_model::Input::Controller(again)).unwrap();
}

/// Runs a removal to its end, and returns the size of the largest work item.
fn largest_note(world: &mut World) -> usize {
    let mut largest = 0;
    loop {
        let notes = world.state().work().map(|item| serde_json::to_vec(item).unwrap().len());
        largest = notes.max().unwrap_or(0).max(largest);
        let (commands, _) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
        let Some(command) = commands.into_iter().next() else { return largest };
        world.work(command);
    }
}

#[test]
fn what_is_to_go_is_found_step_by_step_and_never_listed() {
    let name = format!("app-{}", "x".repeat(40));
    let mut world = World::new();
    let charm = world.upload_app();
    world.deploy(charm, &name, 60);
    world.settle();
    remove_application(&mut world, &name, Some(Force { max_wait: 0 }));
    assert!(largest_note(&mut world) < 500);
    assert_eq!(world.state().unit_count(), 0);
    assert!(!world.has_application(&name));

    world.deploy(charm, &name, 1);
    world.settle();
    let machine = world.state().machines().next().unwrap().id;
    let placement = std::iter::repeat_n(on_machine(machine.0), 60).flatten().collect();
    let (application, attach_storage) = (name.parse().unwrap(), Vec::new());
    world.run(Command::AddUnits { application, count: 60, placement, attach_storage }).unwrap();
    world.settle();
    let units: Vec<String> = world.state().units_on(&machine).map(|unit| unit.name.to_string()).collect();
    units.iter().for_each(|unit| world.start(unit));
    world.run(Command::RemoveMachine { machine, force: Some(Force { max_wait: 30 }) }).unwrap();
    assert!(largest_note(&mut world) < 500);
    assert!(world.state().units_on(&machine).all(|unit| unit.life == Life::Dying));
    world.advance(30);
    world.settle();
    assert!(units.iter().all(|unit| !world.has_unit(unit)));
}
