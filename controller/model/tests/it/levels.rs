//! The level of what is stored.

use periapt_host_api::{ErrorCode, LEVEL, Level, command::ControllerCommand};
use periapt_model::{EntityKey, Root, WorkerCommand, entity::Controller};

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
    let note =
        WorkerCommand::NoteController { name: "two".into(), url: "https://two:1".into(), level: LEVEL };
    assert_eq!(world.try_work(note).unwrap_err().code, ErrorCode::NotSupported);
    assert!(world.root.members().next().is_none());
}
