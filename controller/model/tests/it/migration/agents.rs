//! The agents of a model that migrates.

use periapt_host_api::{
    Digest, ErrorCode,
    agent::Admission,
    command::{Caller, ControllerCommand},
};
use periapt_model::{Input, WorkerCommand};

use super::{carry, migrate, name, source, target};
use crate::world::World;

#[test]
fn an_agent_that_was_there_before_a_model_stays_without_it() {
    let (mut from, mut to) = (source(), target());
    to.join("a1", "key");
    let host = from.root.agent(&name("a1")).unwrap().host.clone();
    to.register(&name("a1"), host);
    to.advance(60);
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    carry(&from, &mut to, id);
    to.control(ControllerCommand::AbortImport { model, id, unless_held: false }).unwrap();
    to.advance(60);
    to.settle();
    assert!(to.root.model_or_remains(&model).is_none());
    assert!(to.root.agent(&name("a1")).is_some() && to.root.enrolments().key_of(&name("a1")).is_some());
}

#[test]
fn the_agents_that_came_are_those_that_there_are() {
    let (mut from, mut to) = (source(), target());
    let model = from.model;
    let id = migrate(&mut from, &to).unwrap();
    let token = Digest::of(b"again");
    let admission = Admission { agent: name("a1"), token, valid_for: 60, again: true };
    from.control(ControllerCommand::AdmitAgent(admission)).unwrap();
    let join = Input::Join { agent: name("a1"), key: Digest::of(b"another key"), token };
    let other_key = |from: &mut World| from.ask(&Caller::Agent(name("a1")), &join).unwrap_err().code;
    assert_eq!(other_key(&mut from), ErrorCode::Migrating);
    carry(&from, &mut to, id);
    from.work(WorkerCommand::HandOverModel(model, id));
    assert_eq!(other_key(&mut from), ErrorCode::Migrating);
    let remove = || ControllerCommand::RemoveAgent { agent: name("a1"), force: true };
    assert_eq!(from.control(remove()).unwrap_err().code, ErrorCode::Migrating);

    let (mut from, to) = (source(), target());
    let id = migrate(&mut from, &to).unwrap();
    from.control(remove()).unwrap();
    let error = from.try_work(WorkerCommand::HandOverModel(model, id)).unwrap_err();
    assert!(error.message.contains("agent \"a1\" was removed"), "{error}");
}

#[test]
fn no_unit_is_placed_on_an_agent_that_goes() {
    let (mut from, to) = (source(), target());
    let other = from.add_model("n");
    migrate(&mut from, &to).unwrap();
    from.within(other, |world| {
        world.deploy_app("app", 1);
        assert!(world.state().agent_of(world.unit("app/0")).is_none());
        world.agent("a2");
        world.settle();
        assert_eq!(world.agent_of("app/0"), "a2");
    });
}
