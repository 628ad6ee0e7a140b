//! Refusals of migrations, with their reasons, by both controllers.

use periapt_host_api::{
    command::{Caller, Command, ControllerCommand},
    migration::ImportPlan,
};
use periapt_model::{Input, plan_migration};

use super::{activate, begin, carry, migrate, source, source_with_reader, target};
use crate::world::World;

#[test]
fn a_model_that_cannot_go_is_refused_with_the_reason() {
    let refused = |world: &World| plan_migration(&world.root, &world.model).unwrap_err().message;
    let mut from = World::new();
    from.deploy_db("db", 1);
    assert!(refused(&from).contains("agent \"a1\" was removed"), "it has no key");
    let mut from = source();
    let other = from.other_model("n", &["a1"]);
    from.within(other, |world| world.deploy_app("app", 2));
    assert!(refused(&from).contains("serves model \"n\" as well"), "{}", refused(&from));
    let mut from = source();
    from.offer("db", &["server"]).unwrap();
    assert!(refused(&from).contains("it offers \"db\" to other models"), "{}", refused(&from));
    let mut from = source();
    let (model, force, storage) = (from.model, None, None);
    from.control(ControllerCommand::DestroyModel { model, force, storage }).unwrap();
    assert!(refused(&from).contains("it is being destroyed"), "{}", refused(&from));
    let (mut from, to) = (source(), target());
    migrate(&mut from, &to).unwrap();
    assert!(refused(&from).contains("a migration to https://other.example:17070 is under way"));
    let mut from = source();
    let own = World::bare("home", 0);
    assert!(migrate(&mut from, &own).unwrap_err().message.contains("on this controller already"));
}

#[test]
fn a_controller_that_cannot_take_a_model_refuses_it_with_the_reason() {
    let from = source();
    let plan = plan_migration(&from.root, &from.model).unwrap();
    let refused = |to: &mut World, plan: &ImportPlan| {
        let root = to.root.clone();
        let error = begin(to, plan, true).unwrap_err();
        assert_eq!(begin(to, plan, false), Err(error.clone()));
        assert_eq!(root.revision(), to.root.revision(), "nothing was written");
        error.message
    };
    let mut to = target();
    assert_eq!(begin(&mut to, &plan, true), Ok(0));
    to.add_model("m");
    assert!(refused(&mut to, &plan).contains("has a model of this name here already"));
    let mut to = target();
    to.join("a1", "another key");
    assert!(refused(&mut to, &plan).contains("agents with the names of its agents are here already: a1"));
    let mut to = target();
    let level = periapt_host_api::Level(9);
    assert!(refused(&mut to, &ImportPlan { level, ..plan.clone() }).contains("stores level 9"));
    let source = to.root.controller().unwrap().uuid;
    assert!(refused(&mut to, &ImportPlan { source, ..plan.clone() }).contains("on this controller already"));
    let model = serde_json::json!({"model": {}});
    assert!(refused(&mut to, &ImportPlan { model, ..plan.clone() }).contains("cannot be read"));

    let mut from = source_with_reader();
    let plan = plan_migration(&from.root, &from.model).unwrap();
    assert!(refused(&mut to, &plan).contains("users who may use it are not known here: jane"));
    to.add_user("jane");
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    activate(&mut to, from.model, id).unwrap();
    to.model = from.model;
    let set = Command::SetModelConfig { set: Default::default(), reset: Vec::new() };
    let jane = Caller::User("jane".parse().unwrap());
    assert!(to.ask(&jane, &Input::Model(to.model, set)).is_ok(), "the grant is of the user here");
}
