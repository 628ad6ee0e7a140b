//! Scopes, and the effects of entering them (`docs/hook-model.md` 2.3).

use periapt_host_api::{
    ErrorCode, RelationId,
    command::{Command, RelationSelector},
    record::RelationRecord,
    status::Life,
    view::Membership,
};
use periapt_model::entity::RelationProgress;

use crate::world::{World, unit};

fn related() -> (World, RelationId) {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.deploy_db("db", 2);
    let id = world.integrate("app", "db").unwrap();
    for name in ["app/0", "app/1", "db/0", "db/1"] {
        world.start(name);
    }
    (world, id)
}

fn with_logging() -> (World, RelationId) {
    let mut world = World::new();
    world.deploy_app("app", 2);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.start("app/1");
    (world, id)
}

#[test]
fn entering_writes_the_units_addresses() {
    //
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    let bag = world.bag(id, "app/0").unwrap();
    let pairs: Vec<_> = bag.settings.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(
        pairs,
        [("egress-subnets", "10.0.0.1/32"), ("ingress-address", "10.0.0.1"), ("private-address", "10.0.0.1")]
    );
    assert_eq!(bag.version, 1);
}

#[test]
fn entering_again_changes_nothing() {
    //
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    world
        .commit("app/0", |commit| {
            let bag = commit.effects.bags.entry(id).or_default();
            bag.unit.insert("k".into(), "v".into());
        })
        .unwrap();
    let before = world.bag(id, "app/0").cloned();
    world.enter("app/0", id).unwrap();
    assert_eq!(world.bag(id, "app/0").cloned(), before);
}

#[test]
fn g03_reentering_replaces_the_bag() {
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    world
        .commit("app/0", |commit| {
            let bag = commit.effects.bags.entry(id).or_default();
            bag.unit.insert("k".into(), "v".into());
        })
        .unwrap();
    let version = world.bag(id, "app/0").unwrap().version;
    world.leave("app/0", id).unwrap();
    assert_eq!(world.bag(id, "app/0").unwrap().settings["k"], "v", "R-15");
    world.enter("app/0", id).unwrap();
    let bag = world.bag(id, "app/0").unwrap();
    assert!(!bag.settings.contains_key("k"));
    assert!(bag.version > version, "others must see that it differs");
}

#[test]
fn g04_nobody_enters_what_is_dying() {
    //
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    world.run(Command::RemoveRelation { relation: RelationSelector::Id(id), force: None }).unwrap();
    let refusal = world.enter("db/0", id).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NotAlive, "not stale: the unit's record is where it was");
    assert_eq!(refusal.message, "cannot enter scope of relation 1 for unit db/0: relation is not alive");
    let (mut world, id) = related();
    world.run(Command::RemoveUnit { unit: unit("db/0"), force: None, storage: Default::default() }).unwrap();
    assert!(world.enter("db/0", id).unwrap_err().message.ends_with("unit is not alive"));
}

#[test]
fn a_unit_enters_only_relations_of_its_application() {
    let (mut world, _) = related();
    world.deploy_db("other", 1);
    let peers = RelationId(0);
    let refused = world.commit("other/0", |commit| {
        commit.transitions.enter_scope.insert(peers);
    });
    assert_eq!(refused.unwrap_err().code, ErrorCode::PermissionDenied);
}

#[test]
fn of_a_relation_that_is_not_its_own_a_unit_does_not_learn_whether_it_exists() {
    //
    let (mut world, _) = related();
    world.deploy_db("other", 1);
    world.start("other/0");
    let (foreign, missing) = (RelationId(0), RelationId(99));
    let answers = [foreign, missing].map(|id| {
        let enter = world.commit("other/0", |commit| {
            commit.transitions.enter_scope.insert(id);
        });
        // The runner writes the record, and may claim anything in it.
        world
            .commit("other/0", |commit| {
                commit.record.relations.insert(id, told_nothing("ring", "app"));
            })
            .unwrap();
        let write = world.commit("other/0", |commit| {
            commit.effects.bags.entry(id).or_default().unit.insert("k".into(), "v".into());
        });
        let leave = world.commit("other/0", |commit| {
            commit.record.relations.remove(&id);
            commit.transitions.leave_scope.insert(id);
        });
        (enter.unwrap_err(), write.unwrap_err(), leave.unwrap())
    });
    assert_eq!(answers[0].0.code, ErrorCode::PermissionDenied);
    assert_eq!(answers[0], answers[1]);
}

fn told_nothing(endpoint: &str, remote: &str) -> RelationRecord {
    RelationRecord {
        endpoint: endpoint.parse().unwrap(),
        remote_application: remote.parse().unwrap(),
        created: true,
        members: Default::default(),
        applications: Default::default(),
        changed_pending: None,
        gone: 0,
    }
}

#[test]
fn a_relation_is_joined_once_a_leader_is_in_scope() {
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    assert_eq!(world.relation(id).progress, RelationProgress::Joining);
    world.claim("db/1", 60).unwrap();
    world.enter("db/1", id).unwrap();
    assert_eq!(world.relation(id).progress, RelationProgress::Joined);

    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    world.claim("app/0", 60).unwrap();
    assert_eq!(world.relation(id).progress, RelationProgress::Joined, "elected while in scope");
}

#[test]
fn g06_a_principal_that_enters_gets_exactly_one_subordinate() {
    // R-16, P-6
    let (mut world, id) = with_logging();
    world.enter("app/0", id).unwrap();
    let subordinate = world.unit("logging/0");
    assert_eq!(subordinate.principal, Some(unit("app/0")));
    assert_eq!(subordinate.machine, world.unit("app/0").machine);
    world.enter("app/0", id).unwrap();
    world.integrate("app:juju-info", "logging:info").unwrap();
    world.enter("app/0", RelationId(id.0 + 1)).unwrap();
    assert_eq!(world.state().units_of(&"logging".parse().unwrap()).count(), 1);
    world.enter("app/1", id).unwrap();
    assert_eq!(world.unit("logging/1").principal, Some(unit("app/1")));
}

#[test]
fn entering_waits_while_an_earlier_subordinate_is_going() {
    //
    let (mut world, id) = with_logging();
    world.enter("app/0", id).unwrap();
    world.start("logging/0");
    world.leave("app/0", id).unwrap();
    let relation = RelationSelector::Id(id);
    world.run(Command::RemoveRelation { relation, force: None }).unwrap();
    world.settle();
    let again = world.integrate("app", "logging").unwrap();
    let refusal = world.enter("app/0", again).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::TryAgain);
    world.terminate("logging/0").unwrap();
    world.enter("app/0", again).unwrap();
    assert!(world.has_unit("logging/1"));
}

#[test]
fn g09_a_dying_unit_is_marked_and_still_in_scope() {
    //
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    world.enter("db/0", id).unwrap();
    world.run(Command::RemoveUnit { unit: unit("db/0"), force: None, storage: Default::default() }).unwrap();
    assert_eq!(world.state().membership(&id, &unit("db/0")), Some(Membership::Departing));
    assert_eq!(world.state().member_count(&id), 2);
    let shown = world.view("a1").relations[&id].members.get(&unit("db/0")).copied();
    assert_eq!(shown, Some(Membership::Departing));
}

#[test]
fn a_subordinate_that_nothing_ties_to_its_principal_is_destroyed() {
    // R-18, F24
    let (mut world, id) = with_logging();
    world.enter("app/0", id).unwrap();
    world.start("logging/0");
    world.enter("logging/0", id).unwrap();
    let second = world.integrate("app:juju-info", "logging:info").unwrap();
    world.run(Command::RemoveRelation { relation: RelationSelector::Id(id), force: None }).unwrap();
    world.settle();
    assert_eq!(world.unit("logging/0").life, Life::Alive, "the other relation still ties it");
    world.run(Command::RemoveRelation { relation: RelationSelector::Id(second), force: None }).unwrap();
    world.settle();
    assert_eq!(world.unit("logging/0").life, Life::Dying);
}

#[test]
fn addresses_are_refreshed_with_config_changed() {
    //
    let (mut world, id) = related();
    world.enter("app/0", id).unwrap();
    let version = world.bag(id, "app/0").unwrap().version;
    world.commit("app/0", |commit| commit.transitions.refresh_addresses = true).unwrap();
    assert_eq!(world.bag(id, "app/0").unwrap().version, version, "nothing changed: R-30");
    move_agent(&mut world, "10.9.9.9");
    assert_eq!(world.bag(id, "app/0").unwrap().settings["ingress-address"], "10.0.0.1");
    world.commit("app/0", |commit| commit.transitions.refresh_addresses = true).unwrap();
    let bag = world.bag(id, "app/0").unwrap();
    assert_eq!(bag.settings["ingress-address"], "10.9.9.9");
    assert_eq!(bag.version, version + 1);
}

/// Registers the agent's host with another address.
fn move_agent(world: &mut World, address: &str) {
    use periapt_host_api::command::Caller;
    use periapt_model::Input;
    let name: periapt_host_api::AgentName = "a1".parse().unwrap();
    let mut host = world.root.agent(&name).unwrap().host.clone();
    host.addresses = vec![address.to_owned()];
    world.ask(&Caller::Agent(name.clone()), &Input::Register(name, host)).unwrap();
}
