//! `config-get`, `unit-get` and their typed twins.

use periapt_host_api::{MachineId, settings::OptionValue};

use crate::world::World;

#[test]
fn one_option_is_printed_in_each_format() {
    World::new().start().check(&[
        ("config-get title", "hello\n"),
        ("config-get size", "80\n"),
        ("config-get ratio", "0.5\n"),
        ("config-get size --format json", "80\n"),
        ("config-get --format=yaml title", "hello\n"),
        ("config-get --format=json title", "\"hello\"\n"),
    ]);
}

#[test]
fn o01_an_option_without_value_is_left_out_or_null_with_the_all_flag() {
    World::new().start().check(&[
        ("config-get", "ratio: 0.5\nsize: 80\ntitle: hello\n"),
        ("config-get --format=json", "{\"ratio\":0.5,\"size\":80,\"title\":\"hello\"}\n"),
        ("config-get --all", "debug: null\nratio: 0.5\nsize: 80\ntitle: hello\ntoken: null\n"),
    ]);
}

#[test]
fn o02_an_unknown_option_is_nothing() {
    World::new().start().check(&[
        ("config-get nothing", ""),
        ("config-get nothing --format=json", "null\n"),
        ("config-get nothing --format=yaml", ""),
        ("config-get debug --format=json", "null\n"),
    ]);
    let mut hook = World::new().start();
    assert_eq!(hook.context.config_get("nothing"), None);
}

#[test]
fn o03_the_all_flag_and_a_key_exclude_each_other() {
    World::new().start().check_errors(&[
        ("config-get -a title", 2, "cannot use argument --all together with key \"title\""),
        ("config-get title size", 2, "unrecognized args: [\"size\"]"),
    ]);
}

#[test]
fn the_typed_door_gives_typed_values() {
    let mut world = World::new();
    world.own_application().config.insert("debug".into(), OptionValue::Boolean(true));
    let mut hook = world.start();
    assert_eq!(hook.context.config_get("size"), Some(OptionValue::Integer(80)));
    assert_eq!(hook.context.config_get("debug"), Some(OptionValue::Boolean(true)));
    let keys: Vec<_> = hook.context.config_get_all().into_iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["debug", "ratio", "size", "title"]);
}

#[test]
fn a_value_that_the_units_charm_does_not_admit_gives_way_to_the_default() {
    let mut world = World::new();
    world.own_application().config.insert("ratio".into(), OptionValue::Text("of a newer charm".into()));
    world.own_application().config.insert("newer".into(), OptionValue::Integer(1));
    let mut hook = world.start();
    assert_eq!(hook.context.config_get("ratio"), Some(OptionValue::Number(0.5)));
    assert_eq!(hook.context.config_get("newer"), None);
}

#[test]
fn addresses_are_the_machines() {
    let mut hook = World::new().start();
    hook.check(&[
        ("unit-get private-address", "10.0.0.9\n"),
        ("unit-get public-address --format json", "\"10.0.0.9\"\n"),
    ]);
    hook.check_errors(&[
        ("unit-get", 2, "no setting specified"),
        ("unit-get colour", 2, "unknown setting \"colour\""),
    ]);
    let mut world = World::new();
    world.inputs.view.machines.get_mut(&MachineId(4)).unwrap().addresses.clear();
    let mut hook = world.start();
    assert_eq!(hook.tool("unit-get private-address").exit_code, 1);
    assert_eq!(hook.context.public_address().unwrap_err().exit_code(), 1);
}
