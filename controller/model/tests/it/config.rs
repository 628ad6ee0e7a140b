//! Settings (`docs/hook-model.md` 6.2) and the configuration of models.

use std::collections::BTreeMap;

use periapt_host_api::{
    Refusal,
    budget::BudgetKey,
    command::{Answer, Command, ControllerCommand},
    settings::{OptionValue, WorkloadCrash},
};

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
    // The empty text is kept, because it differs from the default.
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
    assert_eq!(refusal.message, "unknown option \"nothing\"; known are debug, note, port, ratio, title");
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
    let config = world.state().config();
    assert_eq!((config.update_status_hook_interval, config.automatically_retry_hooks), (600, false));
    set(&mut world, "update-status-hook-interval", "10s").unwrap();
    assert_eq!(world.state().config().update_status_hook_interval, 10);
    assert!(set(&mut world, "update-status-hook-interval", "10").is_err());
    assert!(set(&mut world, "automatically-retry-hooks", "perhaps").is_err());
    assert!(set(&mut world, "colour", "red").unwrap_err().message.contains("\"colour\""));
    let reset = vec!["update-status-hook-interval".to_owned()];
    world.run(Command::SetModelConfig { set: BTreeMap::new(), reset }).unwrap();
    assert_eq!(world.state().config().update_status_hook_interval, 300);
}

#[test]
fn hosts_outside_are_granted_by_an_application_or_else_by_its_model() {
    let mut world = world();
    let own = |world: &World| world.application("app").workload_egress.as_ref().map(ToString::to_string);
    assert!(world.state().config().workload_egress.is_empty() && own(&world).is_none());
    let granted = BTreeMap::from([("workload-egress".to_owned(), "example.com".to_owned())]);
    world.run(Command::SetModelConfig { set: granted, reset: vec![] }).unwrap();
    assert_eq!(world.state().config().workload_egress.to_string(), "example.com");
    set(&mut world, &[("workload-egress", "*.Example.com:443, 10.0.0.0/8"), ("port", "3")], &[]).unwrap();
    assert_eq!(own(&world).as_deref(), Some("*.example.com:443,10.0.0.0/8"));
    assert_eq!(world.application("app").config["port"], OptionValue::Integer(3));
    let before = world.application("app").clone();
    let refusal = set(&mut world, &[("workload-egress", "127.0.0.1"), ("port", "4")], &[]).unwrap_err();
    assert!(refusal.message.contains("\"127.0.0.1\": loopback addresses are never reached"), "{refusal}");
    let refusal = set(&mut world, &[("workload-egress", "")], &["workload-egress"]).unwrap_err();
    assert_eq!(refusal.message, "cannot set and reset key \"workload-egress\" simultaneously");
    assert_eq!(*world.application("app"), before);
    // An empty list of its own is not the model's.
    set(&mut world, &[("workload-egress", "")], &[]).unwrap();
    assert_eq!(own(&world).as_deref(), Some(""));
    set(&mut world, &[], &["workload-egress"]).unwrap();
    assert_eq!(own(&world), None);
}

#[test]
fn an_application_says_what_becomes_of_hooks_that_are_cut_short_beside_workloads() {
    let mut world = world();
    let crash = |world: &World| world.application("app").workload_crash;
    assert_eq!(crash(&world), WorkloadCrash::Retry);
    set(&mut world, &[("workload-crash", "error"), ("port", "3")], &[]).unwrap();
    assert_eq!(crash(&world), WorkloadCrash::Error);
    let before = world.application("app").clone();
    let refusal = set(&mut world, &[("workload-crash", "ignore"), ("port", "4")], &[]).unwrap_err();
    assert_eq!(refusal.message, "workload-crash expected retry or error, got \"ignore\"");
    let refusal = set(&mut world, &[("workload-crash", "error")], &["workload-crash"]).unwrap_err();
    assert_eq!(refusal.message, "cannot set and reset key \"workload-crash\" simultaneously");
    assert_eq!(*world.application("app"), before);
    // It is no setting that a charm is told of.
    assert_eq!(before.config.keys().collect::<Vec<_>>(), ["port"]);
    set(&mut world, &[], &["workload-crash"]).unwrap();
    assert_eq!(crash(&world), WorkloadCrash::Retry);
}

#[test]
fn a_model_is_made_with_its_settings_or_not_at_all() {
    let mut world = World::new();
    let add = |world: &mut World, interval: &str| {
        let config = BTreeMap::from([("update-status-hook-interval".to_owned(), interval.to_owned())]);
        world.control(ControllerCommand::AddModel { name: "next".parse().unwrap(), config })
    };
    let before = world.root.models().count();
    let refusal = add(&mut world, "soon").unwrap_err();
    assert!(refusal.message.contains("update-status-hook-interval"), "{refusal}");
    assert_eq!(world.root.models().count(), before);
    let Answer::Model { uuid } = add(&mut world, "10m").unwrap() else { panic!("a model") };
    assert_eq!(world.root.model(&uuid).unwrap().config().update_status_hook_interval, 600);
    // A request of an older client has no settings.
    let bare: ControllerCommand =
        serde_json::from_value(serde_json::json!({"add-model": {"name": "bare"}})).unwrap();
    assert_eq!(bare, ControllerCommand::add_model("bare".parse().unwrap()));
}

#[test]
fn budgets_of_an_application_are_its_own_and_for_the_rest_the_models() {
    let mut world = world();
    let model = |world: &mut World, set: &[(&str, &str)], reset: &[&str]| {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        world.run(Command::SetModelConfig { set, reset: reset.iter().map(ToString::to_string).collect() })
    };
    let told = |world: &World, key: BudgetKey| {
        let view = periapt_model::view(&world.root, &world.runner("a1"));
        view.budgets(&"app".parse().unwrap()).value(key)
    };
    world
        .run(Command::AddUnits {
            application: "app".parse().unwrap(),
            count: 1,
            placement: vec![],
            attach_storage: vec![],
        })
        .unwrap();
    world.settle();
    let before = world.application("app").config_hash.clone();
    model(&mut world, &[("hook-memory-limit", "64M"), ("hook-timeout", "1m")], &[]).unwrap();
    set(&mut world, &[("hook-timeout", "10s"), ("port", "81")], &[]).unwrap();
    assert_eq!(told(&world, BudgetKey::HookMemoryLimit), 64 << 20);
    assert_eq!(told(&world, BudgetKey::HookTimeout), 10);
    assert_eq!(told(&world, BudgetKey::HookCpuBudget), 30);
    set(&mut world, &[("port", "80")], &["hook-timeout"]).unwrap();
    assert_eq!(told(&world, BudgetKey::HookTimeout), 60);
    model(&mut world, &[], &["hook-memory-limit", "hook-timeout"]).unwrap();
    assert_eq!(told(&world, BudgetKey::HookTimeout), 300);
    assert_eq!(world.application("app").config_hash, before, "a charm is not told of what it may use");
}

#[test]
fn a_budget_that_cannot_be_is_refused_with_what_can_and_changes_nothing() {
    let mut world = world();
    let before = world.application("app").clone();
    let refusal = set(&mut world, &[("port", "81"), ("hook-memory-limit", "2G")], &[]).unwrap_err();
    assert_eq!(refusal.message, "hook-memory-limit expected a size from 1M to 1G, got \"2G\"");
    assert_eq!(refusal.subject.as_deref(), Some("application app"));
    let refusal = set(&mut world, &[("hook-timeout", "1m")], &["hook-timeout"]).unwrap_err();
    assert_eq!(refusal.message, "cannot set and reset key \"hook-timeout\" simultaneously");
    let refusal = set(&mut world, &[("hook-timeout", "1m"), ("nothing", "1")], &[]).unwrap_err();
    assert!(refusal.message.starts_with("unknown option \"nothing\"; known are "), "{}", refusal.message);
    assert_eq!(*world.application("app"), before);
    let wrong = BTreeMap::from([("hook-cpu-budget".to_owned(), "30".to_owned())]);
    let refusal = world.run(Command::SetModelConfig { set: wrong, reset: vec![] }).unwrap_err();
    assert_eq!(refusal.message, "hook-cpu-budget expected a duration from 1s to 1h, got \"30\"");
    assert!(world.state().model().settings.is_empty());
}

#[test]
fn what_a_controller_sets_holds_in_each_model_that_does_not_set_it() {
    let mut world = world();
    world
        .run(Command::AddUnits {
            application: "app".parse().unwrap(),
            count: 1,
            placement: vec![],
            attach_storage: vec![],
        })
        .unwrap();
    world.settle();
    let defaults = |world: &mut World, set: &[(&str, &str)], reset: &[&str]| {
        let set = set.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let reset = reset.iter().map(ToString::to_string).collect();
        world.control(ControllerCommand::SetModelDefaults { set, reset })
    };
    let told = |world: &World| {
        let view = periapt_model::view(&world.root, &world.runner("a1"));
        let interval = view.model.as_ref().unwrap().config.update_status_hook_interval;
        (interval, view.budgets(&"app".parse().unwrap()).value(BudgetKey::HookTimeout))
    };
    defaults(&mut world, &[("update-status-hook-interval", "10m"), ("hook-timeout", "1m")], &[]).unwrap();
    assert_eq!(told(&world), (600, 60), "a model that was there sees it");
    let other = world.add_model("other");
    assert_eq!(world.root.model(&other).unwrap().config().update_status_hook_interval, 600);
    let own = BTreeMap::from([("hook-timeout".to_owned(), "5m".to_owned())]);
    world.run(Command::SetModelConfig { set: own, reset: vec![] }).unwrap();
    assert_eq!(told(&world), (600, 300), "set in the model, though to what is the default");
    defaults(&mut world, &[("hook-timeout", "2m")], &["update-status-hook-interval"]).unwrap();
    assert_eq!(told(&world), (300, 300));
    let reset = vec!["hook-timeout".to_owned()];
    world.run(Command::SetModelConfig { set: BTreeMap::new(), reset }).unwrap();
    assert_eq!(told(&world), (300, 120));
    let refusal = defaults(&mut world, &[("colour", "red"), ("hook-timeout", "9m")], &[]).unwrap_err();
    assert!(refusal.message.starts_with("unknown model configuration key \"colour\""), "{}", refusal.message);
    assert_eq!(told(&world), (300, 120), "all or none");
}
