//! The level of what is stored.

use periapt_host_api::{LEVEL, Level};
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
