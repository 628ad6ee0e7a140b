//! The level of what is stored.

use periapt_host_api::{
    Digest, ErrorCode, LEVEL, Level,
    command::{Command, ControllerCommand},
    program::ProgramOffer,
};
use periapt_model::{
    EntityKey, Input, Root, UploadedResource, WorkerCommand, assignments, entity::Controller, program_within,
    released_program,
};

use crate::world::World;

#[test]
fn a_new_controller_has_the_level_of_its_program() {
    assert_eq!(World::new().root.level(), LEVEL);
    assert_eq!(Root::default().level(), Level::FIRST, "nothing is stored yet");
}

#[test]
fn the_level_of_a_store_of_an_earlier_program_is_raised_and_never_falls() {
    let mut world = World::new();
    let earlier = Controller { level: Level::FIRST, ..world.root.controller().unwrap().clone() };
    world.stored.insert(EntityKey::Controller, earlier.into());
    world.root = Root::from_entities(world.stored.clone(), world.root.revision()).unwrap();
    assert_eq!(world.root.level(), Level::FIRST);

    world.work(WorkerCommand::RaiseLevel(Level(LEVEL.0 + 7)));
    assert_eq!(world.root.level(), LEVEL, "no higher than this program knows");
    let before = world.root.controller().cloned();
    world.work(WorkerCommand::RaiseLevel(Level::FIRST));
    world.work(WorkerCommand::Initialize { name: "home".into() });
    assert_eq!(world.root.controller().cloned(), before);
}

#[test]
fn a_removed_controller_is_let_in_by_a_new_admission_alone() {
    let mut world = World::new();
    let (name, url) = ("two".to_owned(), "https://two:1".to_owned());
    let note =
        |name: &str, level| WorkerCommand::NoteController { name: name.into(), url: url.clone(), level };
    let remove = |name: &str| ControllerCommand::RemoveController { name: name.into() };
    let names =
        |world: &World| -> Vec<String> { world.root.members().map(|(name, _)| name.to_owned()).collect() };
    world.work(WorkerCommand::AdmitController { name: name.clone(), level: LEVEL });
    assert_eq!(names(&world), ["two"], "it is listed before it starts");
    let last = world.control(remove("two")).unwrap_err();
    assert_eq!(last.code, ErrorCode::Conflict, "{last}");
    world.work(note("one", LEVEL));
    world.work(note("two", LEVEL));
    world.control(remove("two")).unwrap();
    assert_eq!(world.control(remove("two")).unwrap_err().code, ErrorCode::NotFound);
    world.work(note("two", LEVEL));
    assert!(world.root.is_removed_member("two") && names(&world) == ["one"], "a report changes nothing");

    let too_old = WorkerCommand::AdmitController { name: name.clone(), level: Level::FIRST };
    let refused = world.try_work(too_old).unwrap_err();
    assert!(refused.message.contains("knows level 1, and the controllers store level 2"), "{refused}");
    world.work(WorkerCommand::AdmitController { name, level: LEVEL });
    assert_eq!(names(&world), ["one", "two"]);
}

#[test]
fn the_names_of_controllers_are_bounded_and_those_of_removed_ones_can_be_used_again() {
    let mut world = World::new();
    let admit = |number: u32| WorkerCommand::AdmitController { name: format!("c{number}"), level: LEVEL };
    for number in 0..64 {
        world.work(admit(number));
    }
    assert_eq!(world.try_work(admit(64)).unwrap_err().code, ErrorCode::QuotaExceeded);
    world.control(ControllerCommand::RemoveController { name: "c7".into() }).unwrap();
    assert_eq!(world.try_work(admit(64)).unwrap_err().code, ErrorCode::QuotaExceeded);
    world.work(admit(7));
    assert_eq!(world.root.members().count(), 64);
}

#[test]
fn what_an_earlier_program_does_not_know_is_refused_below_its_level() {
    let mut world = World::new();
    let earlier = Controller { level: Level::FIRST, ..world.root.controller().unwrap().clone() };
    world.stored.insert(EntityKey::Controller, earlier.into());
    world.root = Root::from_entities(world.stored.clone(), world.root.revision()).unwrap();
    let refused = world.control(ControllerCommand::RemoveController { name: "two".into() }).unwrap_err();
    assert_eq!(refused.code, ErrorCode::NotSupported);
    assert!(refused.message.contains("this needs level 2"), "{refused}");
    let program = ControllerCommand::SetProgram(offer(b"program"));
    assert_eq!(world.control(program).unwrap_err().code, ErrorCode::NotSupported);
    let note =
        WorkerCommand::NoteController { name: "two".into(), url: "https://two:1".into(), level: LEVEL };
    assert_eq!(world.try_work(note).unwrap_err().code, ErrorCode::NotSupported);
    assert!(world.root.members().next().is_none());
    let granted = || [("workload-egress".to_owned(), "example.com".to_owned())].into();
    let of_model = Command::SetModelConfig { set: granted(), reset: Vec::new() };
    let of_all = ControllerCommand::SetModelDefaults { set: granted(), reset: Vec::new() };
    assert_eq!(world.run(of_model).unwrap_err().code, ErrorCode::NotSupported);
    assert_eq!(world.control(of_all).unwrap_err().code, ErrorCode::NotSupported);
    let set = [("workload-crash".to_owned(), "error".to_owned())].into();
    let of_application = Command::SetConfig { application: "app".parse().unwrap(), set, reset: Vec::new() };
    assert_eq!(world.run(of_application).unwrap_err().code, ErrorCode::NotSupported);
}

fn offer(file: &[u8]) -> ProgramOffer {
    let (version, architecture) = ("1.2.3".to_owned(), "x86_64".to_owned());
    ProgramOffer { digest: Digest::of(file), version, architecture, level: LEVEL }
}

#[test]
fn the_program_of_all_is_an_uploaded_file_that_stays_and_agents_take_it_once_it_is_released() {
    let mut world = World::new();
    let set = |world: &mut World, offer: ProgramOffer| world.control(ControllerCommand::SetProgram(offer));
    let first = offer(b"first");
    assert_eq!(set(&mut world, first.clone()).unwrap_err().code, ErrorCode::NotFound, "it is not uploaded");
    for file in [&b"first"[..], b"second"] {
        let uploaded =
            UploadedResource { digest: Digest::of(file), size: file.len() as u64, image: None, parts: None };
        world.ask(&world.user(), &Input::UploadResource(uploaded)).unwrap();
    }
    let too_old = ProgramOffer { level: Level::FIRST, ..first.clone() };
    let refused = set(&mut world, too_old).unwrap_err();
    assert!(refused.message.contains("knows level 1"), "{refused}");
    for bad in ["", "two words", &"x".repeat(65)] {
        let bad = ProgramOffer { version: bad.to_owned(), ..first.clone() };
        assert_eq!(set(&mut world, bad).unwrap_err().code, ErrorCode::BadRequest);
    }

    set(&mut world, first.clone()).unwrap();
    let target = world.root.controller().and_then(|controller| controller.program.clone()).unwrap();
    assert_eq!((target.number, target.size, target.released), (1, 5, false));
    world.work(WorkerCommand::ForgetResource(first.digest));
    assert!(world.root.resource_content(&first.digest).is_some(), "agents and controllers still need it");
    assert_eq!(released_program(&world.root), None, "controllers come first");
    world.work(WorkerCommand::ReleaseProgram(2));
    assert_eq!(released_program(&world.root), None, "another target was meant");
    for number in world.root.agent_count()..12 {
        world.agent(&format!("more-{number}"));
    }
    assert_eq!(program_within(&world.root), 0, "there is nothing to fetch");
    world.work(WorkerCommand::ReleaseProgram(1));
    assert_eq!(released_program(&world.root).map(|target| &target.offer), Some(&first));
    let agent = world.root.agents().next().unwrap().name.clone();
    assert_eq!(assignments(&world.root, &agent).program_within, 2, "five of the twelve agents in a second");

    set(&mut world, offer(b"second")).unwrap();
    assert_eq!(released_program(&world.root), None);
    world.work(WorkerCommand::ForgetResource(first.digest));
    assert!(world.root.resource_content(&first.digest).is_none(), "nobody needs the first one any more");
    set(&mut world, offer(b"second")).unwrap();
    let again = world.root.controller().and_then(|controller| controller.program.as_ref());
    assert_eq!(again.map(|target| target.number), Some(3), "each command is another try");
}
