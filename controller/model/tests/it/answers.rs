//! Requests with an id: sent again, they are carried out once.

use periapt_host_api::{
    Digest, ErrorCode, Refusal, RequestId, UnitName,
    access::{ControllerAccess, ModelAccess},
    command::{Answer, Caller, Command, ControllerCommand},
    secret::Sealed,
};
use periapt_model::{
    EntityKey, Evaluated, IdentityCommand, Input, Output, RequestedCommand, WorkSchedule, WorkerCommand,
    due_work, entity::Registration,
};

use crate::world::World;

/// The most answers that are kept for one user.
const MOST: u32 = 2_048;

fn user(name: &str) -> Caller {
    Caller::User(name.parse().unwrap())
}

fn add_units(application: &str, count: u32) -> Command {
    let (placement, attach_storage) = (Vec::new(), Vec::new());
    Command::AddUnits { application: application.parse().unwrap(), count, placement, attach_storage }
}

/// Returns the first command of a request.
fn requested(request: u128, command: &Command) -> RequestedCommand {
    let digest = Digest::of(format!("{command:?}").as_bytes());
    RequestedCommand { request: RequestId(uuid::Uuid::from_u128(request)), index: 0, digest, response: None }
}

fn send(world: &mut World, name: &str, request: u128, command: Command) -> Result<Evaluated, Refusal> {
    let (model, requested) = (world.model, requested(request, &command));
    world.ask_once(&user(name), &Input::Model(model, command), &requested)
}

/// Returns the units of an answer, and true if the answer was kept.
fn units_of(evaluated: Evaluated) -> (Vec<UnitName>, bool) {
    let (output, repeated) = match evaluated {
        Evaluated::New { output, .. } => (output, false),
        Evaluated::Repeated { output, .. } => (output, true),
    };
    match output {
        Output::Answer(Answer::Units { units }) => (units, repeated),
        other => panic!("{other:?}"),
    }
}

/// Returns a model with an application of one unit, and a second superuser.
fn scene() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    let registration = Registration { token: Digest::of(b"joe"), expires_at: world.now };
    let (name, display_name) = ("joe".parse().unwrap(), String::new());
    let add = IdentityCommand::AddUser { name, display_name, registration };
    world.ask(&user("admin"), &Input::Identity(add)).unwrap();
    let access = ControllerAccess::Superuser;
    let grant = ControllerCommand::GrantController { user: "joe".parse().unwrap(), access };
    world.ask(&user("admin"), &Input::Controller(grant)).unwrap();
    world
}

fn unit_count(world: &World) -> usize {
    world.state().units().count()
}

#[test]
fn a_command_that_is_sent_again_is_one_command() {
    let mut world = scene();
    let (first, repeated) = units_of(send(&mut world, "admin", 1, add_units("app", 1)).unwrap());
    assert_eq!((first.as_slice(), repeated), (["app/1".parse().unwrap()].as_slice(), false));
    let before = world.root.clone();
    let (again, repeated) = units_of(send(&mut world, "admin", 1, add_units("app", 1)).unwrap());
    assert_eq!((again, repeated), (first, true));
    assert_eq!(world.root.revision(), before.revision(), "nothing is written");
    assert_eq!(unit_count(&world), 2);
    let (other, repeated) = units_of(send(&mut world, "admin", 2, add_units("app", 1)).unwrap());
    assert_eq!((other.as_slice(), repeated), (["app/2".parse().unwrap()].as_slice(), false));
}

#[test]
fn the_commands_of_one_request_are_told_apart_by_their_places() {
    let mut world = scene();
    let command = add_units("app", 1);
    for index in 0..3 {
        let requested = RequestedCommand { index, ..requested(1, &command) };
        let input = Input::Model(world.model, command.clone());
        let (_, repeated) = units_of(world.ask_once(&user("admin"), &input, &requested).unwrap());
        assert!(!repeated);
    }
    assert_eq!(unit_count(&world), 4);
}

#[test]
fn another_user_with_the_same_id_is_another_request() {
    let mut world = scene();
    send(&mut world, "admin", 1, add_units("app", 1)).unwrap();
    let (units, repeated) = units_of(send(&mut world, "joe", 1, add_units("app", 1)).unwrap());
    assert_eq!((units.as_slice(), repeated), (["app/2".parse().unwrap()].as_slice(), false));
}

#[test]
fn a_later_user_of_the_same_name_gets_no_answer_of_the_former() {
    let mut world = scene();
    send(&mut world, "joe", 1, add_units("app", 1)).unwrap();
    let remove = ControllerCommand::RemoveUser { user: "joe".parse().unwrap() };
    world.ask(&user("admin"), &Input::Controller(remove)).unwrap();
    let registration = Registration { token: Digest::of(b"joe again"), expires_at: world.now };
    let (name, display_name) = ("joe".parse().unwrap(), String::new());
    let add = IdentityCommand::AddUser { name, display_name, registration };
    world.ask(&user("admin"), &Input::Identity(add)).unwrap();
    let refused = send(&mut world, "joe", 1, add_units("app", 1)).unwrap_err();
    assert!(matches!(refused.code, ErrorCode::PermissionDenied | ErrorCode::NotFound), "{refused:?}");
    let grant = Command::GrantModel { user: "joe".parse().unwrap(), access: ModelAccess::Write };
    let model = world.model;
    world.ask(&user("admin"), &Input::Model(model, grant)).unwrap();
    let (units, repeated) = units_of(send(&mut world, "joe", 1, add_units("app", 1)).unwrap());
    assert_eq!((units.as_slice(), repeated), (["app/2".parse().unwrap()].as_slice(), false));
}

#[test]
fn an_id_of_another_command_is_refused() {
    let mut world = scene();
    send(&mut world, "admin", 1, add_units("app", 1)).unwrap();
    let refused = send(&mut world, "admin", 1, add_units("app", 2)).unwrap_err();
    assert_eq!(refused.code, ErrorCode::BadRequest);
    assert!(refused.message.contains("was used for another command"), "{refused}");
    assert_eq!(unit_count(&world), 2);
}

#[test]
fn a_refusal_is_not_kept_and_a_command_that_would_now_be_refused_has_its_answer() {
    let mut world = scene();
    send(&mut world, "admin", 1, add_units("later", 1)).unwrap_err();
    world.deploy_app("later", 1);
    let (units, repeated) = units_of(send(&mut world, "admin", 1, add_units("later", 1)).unwrap());
    assert_eq!((units.len(), repeated), (1, false));
    let remove = Command::RemoveApplication {
        application: "later".parse().unwrap(),
        storage: Default::default(),
        force: None,
    };
    world.run(remove).unwrap();
    world.run(add_units("later", 1)).unwrap_err();
    assert_eq!(units_of(send(&mut world, "admin", 1, add_units("later", 1)).unwrap()), (units, true));
}

#[test]
fn a_sealed_response_comes_back_with_the_answer() {
    let mut world = scene();
    let sealed = |text: &str| Some(Sealed { checksum: text.into(), bytes: text.into() });
    let command = add_units("app", 1);
    let input = Input::Model(world.model, command.clone());
    let first = RequestedCommand { response: sealed("first"), ..requested(1, &command) };
    world.ask_once(&user("admin"), &input, &first).unwrap();
    let second = RequestedCommand { response: sealed("second"), ..first };
    let Evaluated::Repeated { response, .. } = world.ask_once(&user("admin"), &input, &second).unwrap()
    else {
        panic!("it is known");
    };
    assert_eq!(response, sealed("first"));
}

#[test]
fn answers_are_kept_for_ten_minutes_and_forgotten_minute_by_minute() {
    let mut world = scene();
    world.settle();
    for request in 0..200 {
        send(&mut world, "admin", request, add_units("app", 1)).unwrap();
        if request == 99 {
            world.settle();
            world.advance(1);
        }
    }
    world.settle();
    assert_eq!(world.root.answer_count(), 200);
    world.advance(598);
    world.settle();
    assert_eq!(world.root.answer_count(), 200);
    assert!(units_of(send(&mut world, "admin", 0, add_units("app", 1)).unwrap()).1);
    // Not each answer wakes the worker: all of a minute go together.
    world.advance(2);
    let (due, wake) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert!(!due.contains(&WorkerCommand::ForgetAnswers));
    assert!(wake.unwrap() <= world.now + std::time::Duration::from_secs(60), "{wake:?}");
    world.advance(60);
    let (due, _) = due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default());
    assert_eq!(due.iter().filter(|command| **command == WorkerCommand::ForgetAnswers).count(), 1);
    world.settle();
    assert_eq!(world.root.answer_count(), 0);
    assert!(!world.stored.keys().any(|key| matches!(key, EntityKey::Answer(_))));
    let (_, repeated) = units_of(send(&mut world, "admin", 0, add_units("app", 1)).unwrap());
    assert!(!repeated, "a request whose answer is forgotten is a new one");
}

#[test]
fn one_user_keeps_a_bounded_number_of_answers_and_loses_the_oldest_alone() {
    let mut world = scene();
    world.checked = false;
    let set = || Command::SetModelConfig { set: Default::default(), reset: Vec::new() };
    send(&mut world, "joe", 0, set()).unwrap();
    for request in 0..u128::from(MOST) + 10 {
        send(&mut world, "admin", request, set()).unwrap();
        world.now += std::time::Duration::from_millis(1);
    }
    assert_eq!(world.root.answer_count(), usize::try_from(MOST).unwrap() + 1);
    let is_kept = |world: &mut World, name: &str, request| {
        matches!(send(world, name, request, set()).unwrap(), Evaluated::Repeated { .. })
    };
    assert!(is_kept(&mut world, "joe", 0), "no user takes the room of another");
    assert!(is_kept(&mut world, "admin", 10));
    assert!(is_kept(&mut world, "admin", u128::from(MOST) + 9));
    assert!(!is_kept(&mut world, "admin", 9));
}

#[test]
fn large_answers_of_one_user_are_bounded_in_bytes() {
    let mut world = scene();
    world.checked = false;
    let command = Command::SetModelConfig { set: Default::default(), reset: Vec::new() };
    let input = Input::Model(world.model, command.clone());
    let kilobytes = |count: usize| {
        let response = Some(Sealed { checksum: String::new(), bytes: "x".repeat(count << 10) });
        move |request| RequestedCommand { response: response.clone(), ..requested(request, &command) }
    };
    let large = kilobytes(100);
    for request in 0..50 {
        world.ask_once(&user("admin"), &input, &large(request)).unwrap();
    }
    assert_eq!(world.root.answer_count(), 20, "two mebibytes");
}
