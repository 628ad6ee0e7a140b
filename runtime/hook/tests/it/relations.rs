//! Which relations a unit has, and who is in them.

use periapt_host_api::{EndpointName, event::Event, relation::Scope, status::Life};

use crate::world::{DB, World, changed, db, departed, joined, now, ready, unit};
use periapt_hook::{Bag, CallError};

#[test]
fn ids_are_those_of_the_endpoint() {
    let mut hook = World::new().event(changed("b/0")).start();
    hook.check(&[
        ("relation-ids", "db:1\n"),
        ("relation-ids ring", "ring:2\n"),
        ("relation-ids db --format=json", "[\"db:1\"]\n"),
        ("relation-ids unknown", ""),
        ("relation-ids unknown --format=json", "[]\n"),
    ]);
    assert_eq!(hook.context.relation_ids("db"), [DB]);
    World::new().start().check_errors(&[("relation-ids", 2, "no endpoint name specified")]);
}

#[test]
fn the_list_holds_whom_the_unit_was_told_of() {
    let mut world = World::new();
    world.members(DB, &["b/10", "b/2"]);
    let mut hook = world.event(joined("b/3")).start();
    hook.check(&[
        ("relation-list", "b/2\nb/3\nb/10\n"),
        ("relation-list -r db:1 --format=json", "[\"b/2\",\"b/3\",\"b/10\"]\n"),
        ("relation-list -r 2", "a/1\n"),
        ("relation-list --app", "b\n"),
        ("relation-list --app --format=json -r ring:2", "\"a\"\n"),
    ]);
    assert_eq!(hook.context.relation_members(DB).unwrap(), [unit("b/2"), unit("b/3"), unit("b/10")]);
}

#[test]
fn h08_the_departing_unit_is_not_listed_and_its_bag_is_readable() {
    let mut hook = World::new().event(departed("b/0")).start();
    hook.check(&[
        ("relation-list", "b/1\n"),
        ("relation-get", "host: 10.0.0.4\nport: \"3306\"\n"),
        ("relation-get host b/0", "10.0.0.4\n"),
        ("relation-ids db", "db:1\n"),
    ]);
}

#[test]
fn h13_a_relation_without_members_lists_nobody() {
    let mut world = World::new();
    world.members(DB, &[]);
    world.event(Event::RelationCreated(db())).start().check(&[
        ("relation-list", ""),
        ("relation-list --format=json", "[]\n"),
        ("relation-list --format=yaml", "[]\n"),
        ("relation-ids", "db:1\n"),
    ]);
}

#[test]
fn a_broken_relation_is_left_out_and_its_bags_are_readable() {
    let mut world = World::new();
    world.members(DB, &[]);
    world.relation(DB).life = Life::Dying;
    let mut hook = world.event(Event::RelationBroken(db())).start();
    hook.check(&[
        ("relation-ids db", ""),
        ("relation-list", ""),
        ("relation-get", "version: \"8\"\n"),
        ("relation-get - b/0", "host: 10.0.0.4\nport: \"3306\"\n"),
        ("relation-get - a/0", "ingress-address: 10.0.0.9\n"),
        ("relation-set a=1", ""),
    ]);
}

#[test]
fn a_dying_relation_is_listed_while_it_has_members() {
    let mut world = World::new();
    world.relation(DB).life = Life::Dying;
    world.start().check(&[("relation-ids db", "db:1\n")]);
    let mut world = World::new();
    world.relation(DB).suspended = true;
    world.members(DB, &[]);
    world.start().check(&[("relation-ids db", "")]);
}

#[test]
fn a_relation_removed_by_force_still_winds_up() {
    let mut world = World::new();
    world.inputs.view.relations.remove(&DB);
    let mut hook = world.event(departed("b/1")).start();
    hook.check(&[
        ("relation-list", "b/0\n"),
        ("relation-get host b/1", "10.0.0.5\n"),
        ("relation-ids", "db:1\n"),
    ]);
}

#[test]
fn h12_a_relation_that_is_not_the_units_is_not_found() {
    let mut hook = World::new().start();
    hook.check_errors(&[
        (
            "relation-set -r burble:123 a=1",
            2,
            "invalid value \"burble:123\" for option -r: relation not found",
        ),
        (
            "relation-get --relation=9 - b/0",
            2,
            "invalid value \"9\" for option --relation: relation not found",
        ),
        ("relation-list -r -1", 2, "invalid value \"-1\" for option -r: relation not found"),
        ("relation-list -r db:x", 2, "invalid value \"db:x\" for option -r: invalid relation id"),
        ("relation-list", 2, "no relation id specified"),
        ("relation-set a=1", 2, "no relation id specified"),
    ]);
    let missing = hook.context.relation_members(periapt_host_api::RelationId(9));
    assert_eq!(missing, Err(CallError::NotFound("relation not found".to_owned())));
}

#[test]
fn in_a_container_relation_units_see_only_who_shares_theirs() {
    let mut world = World::new();
    world.relation(DB).scope = Scope::Container;
    world.own_unit().principal = Some(unit("b/1"));
    world.members(DB, &["b/1"]);
    let mut hook = world.start();
    hook.check(&[("relation-get -r 1 host b/1", "10.0.0.5\n")]);
    hook.check_errors(&[("relation-get -r 1 host b/0", 1, "permission denied")]);
    let denied = ready(hook.context.relation_get(now(), DB, &Bag::Unit("b/0".to_owned())));
    assert_eq!(denied, Err(CallError::PermissionDenied("permission denied".to_owned())));
}

#[test]
fn the_typed_door_names_endpoint_and_remote_application() {
    let mut hook = World::new().start();
    assert_eq!(hook.context.relation_endpoint(DB), Ok(EndpointName::new("db").unwrap()));
    assert_eq!(hook.context.relation_remote_application(DB).unwrap().as_str(), "b");
}

#[test]
fn the_other_ends_model_is_told() {
    let mut hook = World::new().start();
    hook.check(&[(
        "relation-model-get -r db:1 --format=json",
        "{\"uuid\":\"11111111-2222-4333-8444-555555555555\"}\n",
    )]);
}
