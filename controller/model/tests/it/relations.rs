//! The creation and removal of relations (`docs/hook-model.md` 2.1, 2.2).

use periapt_host_api::{
    ErrorCode, RelationId,
    command::{Answer, Command, Force, RelationSelector},
    relation::{Role, Scope},
    status::Life,
};

use crate::world::{World, selector};

fn remove(world: &mut World, id: RelationId, force: Option<Force>) -> Answer {
    let relation = RelationSelector::Id(id);
    world.run(Command::RemoveRelation { relation, force }).unwrap()
}

/// Returns a world with `app` and `db`. Their relation has number 1, because the peer relation has 0.
fn world() -> World {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_db("db", 2);
    world
}

#[test]
fn endpoints_are_inferred_and_the_provider_stands_first() {
    //
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    assert_eq!(id, RelationId(1));
    let relation = world.relation(id);
    assert_eq!(relation.describe(), "app:db db:server");
    assert_eq!(relation.endpoints[0].role, Role::Provider);
    assert_eq!(relation.scope, Scope::Global);
}

#[test]
fn ids_are_never_reused() {
    //
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    assert_eq!(remove(&mut world, id, None), Answer::Removal { gone: true, waits_for: vec![] });
    assert_eq!(world.integrate("app", "db").unwrap(), RelationId(id.0 + 1));
}

#[test]
fn an_ambiguous_pair_is_refused_with_the_list() {
    //
    let mut world = world();
    let two = "
name: two
summary: s
description: d
provides:
  one: {interface: sql}
  other: {interface: sql}
";
    let charm = world.upload(two);
    world.deploy(charm, "two", 0);
    let refusal = world.integrate("app", "two").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::Ambiguous);
    assert_eq!(
        refusal.message,
        "ambiguous relation: \"app two\" could refer to \"app:db two:one\"; \"app:db two:other\""
    );
    world.integrate("app", "two:other").unwrap();
}

#[test]
fn g11_endpoints_of_equal_role_or_other_interface_do_not_relate() {
    let mut world = world();
    world.deploy_db("db2", 0);
    for (first, second, message) in [
        ("app:web", "db:server", "cannot add relation \"app:web db:server\": endpoints do not relate"),
        ("app:logs", "db:server", "cannot add relation \"app:logs db:server\": endpoints do not relate"),
        ("db", "db2", "no relations found; db has server ("),
        ("app", "app", "no relations found"),
        ("app:nothing", "db", "application \"app\" has no \"nothing\" relation; it has "),
        ("app", "nobody", "application \"nobody\" not found"),
    ] {
        let told = world.integrate(first, second).unwrap_err().message;
        assert!(told.starts_with(message), "{told}");
    }
}

#[test]
fn g12_a_limit_bounds_the_relations_of_an_endpoint() {
    let mut world = world();
    let client = "
name: client
summary: s
description: d
requires:
  site: {interface: http}
";
    let charm = world.upload(client);
    world.deploy(charm, "one", 0);
    world.deploy(charm, "two", 0);
    world.integrate("one", "app").unwrap();
    let refusal = world.integrate("two", "app").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QuotaExceeded);
    let limit = "establishing a new relation for app:web would exceed its maximum relation limit of 1";
    assert!(refusal.message.ends_with(limit), "{}", refusal.message);
}

#[test]
fn g13_a_container_relation_needs_a_subordinate() {
    let mut world = world();
    let principal = "
name: sink
summary: s
description: d
provides:
  sink: {interface: syslog, scope: container}
";
    let charm = world.upload(principal);
    world.deploy(charm, "sink", 0);
    let refusal = world.integrate("app", "sink").unwrap_err();
    assert_eq!(
        refusal.message,
        "cannot add relation \"app:logs sink:sink\": container scoped relation requires at least one \
         subordinate application"
    );
}

#[test]
fn an_explicit_endpoint_wins_over_the_implicit_one() {
    //
    let mut world = world();
    world.deploy_logging("logging");
    let explicit = world.integrate("app", "logging").unwrap();
    assert_eq!(world.relation(explicit).describe(), "app:logs logging:sink");
    let implicit = world.integrate("db", "logging").unwrap();
    let relation = world.relation(implicit);
    assert_eq!(relation.describe(), "logging:info db:juju-info");
    assert_eq!(relation.scope, Scope::Container);
    world.integrate("app:juju-info", "logging:info").unwrap();
}

#[test]
fn the_same_pair_is_related_once() {
    //
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    let refusal = world.integrate("db:server", "app").unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AlreadyExists);
    assert!(refusal.message.ends_with("relation app:db db:server already exists"));
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    remove(&mut world, id, None);
    let refusal = world.integrate("app", "db").unwrap_err();
    assert!(refusal.message.ends_with("relation app:db db:server is dying, but not yet removed"));
}

#[test]
fn g14_a_peer_relation_is_not_destroyed() {
    let mut world = world();
    let relation = RelationSelector::Endpoints(selector("app:ring"), selector("app:ring"));
    for relation in [relation, RelationSelector::Id(RelationId(0))] {
        let refusal = world.run(Command::RemoveRelation { relation, force: None }).unwrap_err();
        assert_eq!(refusal.message, "cannot destroy relation \"app:ring\": is a peer relation");
    }
}

#[test]
fn g15_a_relation_with_nobody_in_scope_goes_at_once() {
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    let relation = RelationSelector::Endpoints(selector("app"), selector("db"));
    let answer = world.run(Command::RemoveRelation { relation, force: None }).unwrap();
    assert_eq!(answer, Answer::Removal { gone: true, waits_for: vec![] });
    assert!(world.state().relation(&id).is_none());
}

#[test]
fn g05_a_dying_relation_goes_with_the_last_unit_in_its_scope() {
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    for unit in ["app/0", "db/0"] {
        world.start(unit);
        world.enter(unit, id).unwrap();
    }
    let answer = remove(&mut world, id, None);
    let waits_for = vec!["unit app/0 to leave its scope".into(), "unit db/0 to leave its scope".into()];
    assert_eq!(answer, Answer::Removal { gone: false, waits_for });
    world.leave("app/0", id).unwrap();
    assert_eq!(world.relation(id).life, Life::Dying);
    assert!(world.bag(id, "app/0").is_some(), "R-15: the bag stays");
    world.leave("db/0", id).unwrap();
    assert!(world.state().relation(&id).is_none());
    assert!(world.bag(id, "app/0").is_none());
}

#[test]
fn g19_a_forced_removal_waits_and_then_takes_units_out_of_scope() {
    let mut world = world();
    let id = world.integrate("app", "db").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    remove(&mut world, id, Some(Force { max_wait: 60 }));
    world.advance(59);
    world.settle();
    assert_eq!(world.state().member_count(&id), 1);
    world.advance(1);
    world.settle();
    assert_eq!(world.state().member_count(&id), 0);
    // The relation is visible only to the unit that has yet to run its last hooks with the last bags.
    assert!(world.status().relations.iter().all(|relation| relation.id != id.0));
    let view = world.view("a1");
    assert_eq!(view.relations[&id].life, Life::Dead);
    assert!(view.bags.keys().any(|key| key.relation == id));
    world.integrate("app", "db").expect("another may be made meanwhile");
    world.leave("app/0", id).unwrap();
    assert!(world.state().relation(&id).is_none());
    assert!(world.view("a1").bags.keys().all(|key| key.relation != id));
}

#[test]
fn many_bags_of_a_relation_go_in_steps() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_db("db", 120);
    let id = world.integrate("app", "db").unwrap();
    let names: Vec<String> = (0..120).map(|number| format!("db/{number}")).collect();
    for name in &names {
        world.enter(name, id).unwrap();
        world.leave(name, id).unwrap();
    }
    assert_eq!(world.state().bag_count(&id), 120);
    remove(&mut world, id, None);
    assert!(world.state().relation(&id).is_none());
    world.settle();
    assert_eq!(world.state().bag_count(&id), 0);
}
