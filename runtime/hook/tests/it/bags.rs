//! Access to bags.

use periapt_hook::{BagSelector, CallError};
use periapt_host_api::relation::{BagKey, BagOwner};

use crate::world::{DB, World, application, changed, now, ready, unit};

#[test]
fn h06_a_bag_is_the_same_throughout_the_hook() {
    let world = World::new().event(changed("b/0"));
    let mut mirror = world.inputs.view.clone();
    let mut hook = world.start();
    let before = hook.tool("relation-get host");
    let key = BagKey { relation: DB, owner: BagOwner::Unit(unit("b/0")) };
    let mut bag = mirror.bags[&key].clone();
    bag.settings.insert("host".into(), "moved".into());
    mirror.bags.insert(key, bag);
    assert_eq!(hook.tool("relation-get host"), before);
    let mut next = World::new().event(changed("b/0"));
    next.inputs.view = mirror;
    next.start().check(&[("relation-get host", "moved\n")]);
}

#[test]
fn a_leader_whose_bag_is_not_in_view_yet_is_not_told_that_it_is_empty() {
    let mut world = World::new();
    world.inputs.lease = World::leader().inputs.lease;
    let key = BagKey { relation: DB, owner: BagOwner::Application(application("a")) };
    world.inputs.view.bags.remove(&key);
    let mut hook = world.start();
    let answer = ready(hook.context.relation_get(now(), DB, &BagSelector::Application("a".to_owned())));
    assert!(matches!(answer, Err(CallError::TryAgain(_))), "{answer:?}");
    let mut world = World::leader();
    world.inputs.view.bags.remove(&key);
    world.event(changed("b/0")).start().check(&[("relation-get --app - a", "{}\n")]);
}

#[test]
fn a_file_is_a_map_of_texts() {
    let mut hook = World::new().event(changed("b/0")).start();
    for wrong in ["[a]", "a: [1]", "a: {b: c}", "a: 1\na: 2", "\"", "just text"] {
        let output = hook.tool_with("relation-set --file -", Some(wrong));
        assert_eq!(output.exit_code, 1, "{wrong}");
        assert!(output.stderr.starts_with("ERROR cannot read settings: "), "{wrong}: {}", output.stderr);
    }
    assert!(hook.finish().effects.is_empty());
}
