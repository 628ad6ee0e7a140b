//! The state that charms store for their units (`docs/hook-model.md` 5.11).

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal,
    command::{Command, ControllerCommand, Force},
    state::StateKey,
    status::Life,
};

use crate::world::{World, unit};

fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    world
}

fn store(world: &mut World, changes: &[(&str, Option<&str>)]) -> Result<(), Refusal> {
    let changes = changes.iter().map(|(key, value)| ((*key).to_owned(), value.map(str::to_owned)));
    world.commit("app/0", |commit| commit.effects.state = changes.collect()).map(|_| ())
}

fn stored(world: &World) -> BTreeMap<String, String> {
    let view = world.view("a1");
    assert!(view.states.keys().all(|key| key.unit == unit("app/0")));
    view.states.into_iter().map(|(key, entry)| (key.key, entry.value)).collect()
}

#[test]
fn what_is_stored_is_seen_by_the_units_own_runner_alone() {
    let mut world = world();
    world.agent("a2");
    store(&mut world, &[("a", Some("1")), ("b", Some("")), ("c", Some("3"))]).unwrap();
    store(&mut world, &[("a", Some("2")), ("c", None), ("never", None)]).unwrap();
    assert_eq!(stored(&world), [("a".into(), "2".into()), ("b".into(), String::new())].into());
    assert!(world.view("a2").states.is_empty());
}

#[test]
fn o11_what_is_too_much_is_refused_whole() {
    let mut world = world();
    store(&mut world, &[("a", Some("1"))]).unwrap();
    let (key, value) = ("k".repeat(300), "v".repeat(70_000));
    for (changes, message) in [
        (
            [("a", Some("2")), (key.as_str(), Some("x"))],
            "a key of the state must take 1 to 256 bytes, not 300",
        ),
        (
            [("a", Some("2")), ("big", Some(value.as_str()))],
            "the state's value of \"big\" takes 70000 bytes, at most 65536 are allowed",
        ),
    ] {
        let refusal = store(&mut world, &changes).unwrap_err();
        assert_eq!((refusal.code, refusal.message.as_str()), (ErrorCode::QuotaExceeded, message));
    }
    assert_eq!(stored(&world)["a"], "1");
    store(&mut world, &[("a", None), (&"k".repeat(256), Some(&"v".repeat(65_536)))]).unwrap();
}

#[test]
fn the_state_of_a_unit_is_bounded_in_all() {
    let mut world = world();
    let value = "v".repeat(65_000);
    for number in 0..32 {
        store(&mut world, &[(&format!("k{number}"), Some(&value))]).unwrap();
    }
    let refusal = store(&mut world, &[("one-more", Some(&value))]).unwrap_err();
    assert!(refusal.message.ends_with("at most 2097152 are allowed"), "{}", refusal.message);
    store(&mut world, &[("k0", None), ("one-more", Some(&value))]).unwrap();
    let mut world = self::world();
    for batch in 0..45 {
        let keys: Vec<String> = (0..90).map(|number| format!("small-{batch}-{number}")).collect();
        let changes: Vec<_> = keys.iter().map(|key| (key.as_str(), Some(""))).collect();
        store(&mut world, &changes).unwrap();
    }
    let keys: Vec<String> = (0..90).map(|number| format!("last-{number}")).collect();
    let changes: Vec<_> = keys.iter().map(|key| (key.as_str(), Some(""))).collect();
    let refusal = store(&mut world, &changes).unwrap_err();
    assert_eq!(refusal.message, "the state would have 4140 keys, at most 4096 are allowed");
}

/// L-8: the state is deleted, however large it is, after every kind of removal.
#[test]
fn state_goes_with_its_unit() {
    for how in ["terminated", "forced", "with its model"] {
        let mut world = world();
        for batch in 0..3 {
            let keys: Vec<String> = (0..90).map(|number| format!("{batch}-{number}")).collect();
            let changes: Vec<_> = keys.iter().map(|key| (key.as_str(), Some("x"))).collect();
            store(&mut world, &changes).unwrap();
        }
        let force = (how == "forced").then_some(Force { max_wait: 0 });
        match how {
            "with its model" => {
                let model = world.model;
                let force = Some(Force { max_wait: 0 });
                world.control(ControllerCommand::DestroyModel { model, force, storage: None }).unwrap();
                world.settle();
                assert!(world.stored.keys().all(|key| !format!("{key:?}").contains("State(")), "{how}");
                continue;
            }
            _ => world
                .run(Command::RemoveUnit { unit: unit("app/0"), force, storage: Default::default() })
                .map(|_| ())
                .unwrap(),
        }
        if force.is_none() {
            world.terminate("app/0").unwrap();
            assert_eq!(world.unit("app/0").life, Life::Dead, "too much for one commit");
        }
        world.settle();
        assert!(!world.has_unit("app/0"), "{how}");
        let key = StateKey { unit: unit("app/0"), key: "0-0".into() };
        assert!(
            world.state().state_entry(&key).is_none() && world.state().units_with_state().next().is_none()
        );
    }
}
