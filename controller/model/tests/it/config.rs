//! Settings (`hook-model.md` 6.2) and model configuration.

use std::collections::BTreeMap;

use periapt_host_api::{Refusal, command::Command, settings::OptionValue};

use crate::world::World;

fn set(world: &mut World, pairs: &[(&str, &str)], reset: &[&str]) -> Result<(), Refusal> {
    let set: BTreeMap<_, _> = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let reset = reset.iter().map(ToString::to_string).collect();
    world.run(Command::SetConfig { application: "app".parse().unwrap(), set, reset }).map(|_| ())
}

fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 0);
    world
}

#[test]
fn p05_values_are_read_by_their_types() {
    let mut world = world();
    set(&mut world, &[("port", "3"), ("ratio", "0.5"), ("debug", "T"), ("title", "")], &[]).unwrap();
    let config = &world.application("app").config;
    assert_eq!(config["port"], OptionValue::Integer(3));
    assert_eq!(config["ratio"], OptionValue::Number(0.5));
    assert_eq!(config["debug"], OptionValue::Boolean(true));
    // Kept, for there is a default that it differs from.
    assert_eq!(config["title"], OptionValue::Text(String::new()));
    let refusal = set(&mut world, &[("port", "x")], &[]).unwrap_err();
    assert_eq!(refusal.message, "option \"port\" expected int, got \"x\"");
    assert_eq!(refusal.subject.as_deref(), Some("application app"));
}

#[test]
fn a_wrong_option_keeps_all_others_from_being_set() {
    let mut world = world();
    let before = world.application("app").clone();
    let refusal = set(&mut world, &[("port", "3"), ("nothing", "1")], &[]).unwrap_err();
    assert_eq!(refusal.message, "unknown option \"nothing\"");
    let refusal = set(&mut world, &[("port", "3")], &["port"]).unwrap_err();
    assert_eq!(refusal.message, "cannot set and reset key \"port\" simultaneously");
    assert_eq!(*world.application("app"), before);
}

#[test]
fn the_hash_differs_exactly_when_a_hook_would_see_other_settings() {
    // M-8
    let mut world = world();
    let hash = |world: &World| world.application("app").config_hash.clone();
    let first = hash(&world);
    set(&mut world, &[("port", "80")], &[]).unwrap();
    assert_eq!(hash(&world), first, "the value is the default's");
    set(&mut world, &[("port", "81")], &[]).unwrap();
    let changed = hash(&world);
    assert_ne!(changed, first);
    set(&mut world, &[("port", "81")], &[]).unwrap();
    assert_eq!(hash(&world), changed);
    set(&mut world, &[], &["port"]).unwrap();
    assert_eq!(hash(&world), first);
    set(&mut world, &[("note", "")], &[]).unwrap();
    assert_eq!(hash(&world), first, "an empty text without a default is unset");
}

#[test]
fn trust_has_a_hash_of_its_own() {
    // M-9
    let mut world = world();
    let before = world.application("app").clone();
    world.run(Command::SetTrust { application: "app".parse().unwrap(), trust: true }).unwrap();
    let after = world.application("app");
    assert_ne!(after.trust_hash, before.trust_hash);
    assert_eq!(after.config_hash, before.config_hash);
}

#[test]
fn settings_are_bounded() {
    let mut world = world();
    let long = "x".repeat(300 << 10);
    let refusal = set(&mut world, &[("title", &long)], &[]).unwrap_err();
    assert_eq!(refusal.code, periapt_host_api::ErrorCode::QuotaExceeded);
}

#[test]
fn model_configuration_is_read_by_its_keys() {
    let mut world = world();
    let set = |world: &mut World, key: &str, value: &str| {
        let set = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        world.run(Command::SetModelConfig { set, reset: vec![] })
    };
    set(&mut world, "update-status-hook-interval", "10m").unwrap();
    set(&mut world, "automatically-retry-hooks", "false").unwrap();
    let config = &world.state().model().config;
    assert_eq!((config.update_status_hook_interval, config.automatically_retry_hooks), (600, false));
    assert!(set(&mut world, "update-status-hook-interval", "10s").is_err());
    assert!(set(&mut world, "automatically-retry-hooks", "perhaps").is_err());
    assert!(set(&mut world, "colour", "red").unwrap_err().message.contains("\"colour\""));
    let reset = vec!["update-status-hook-interval".to_owned()];
    world.run(Command::SetModelConfig { set: BTreeMap::new(), reset }).unwrap();
    assert_eq!(world.state().model().config.update_status_hook_interval, 300);
}
