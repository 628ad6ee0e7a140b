//! The view of a runner (`docs/design/views.md`, `docs/hook-model.md` 2.7).

use periapt_host_api::{
    Digest, RelationId,
    agent::{AgentPlace, Register, RunnerAnswer},
    command::{Caller, Command, Force, Placement, RefreshWith, RelationSelector},
    relation::{BagKey, BagOwner},
    view::{UnitOutline, View},
};
use periapt_model::{assignments, peers, view};

use crate::world::{DB, World, deploy_command, unit};

/// Returns a world with `app` on agent a1 and `db` on agent a2, related, with all units in scope.
fn apart() -> (World, RelationId) {
    let mut world = World::new();
    world.agent("a2");
    let (app, db) = (world.upload_app(), world.upload(DB));
    for (charm, name, agent) in [(app, "app", "a1"), (db, "db", "a2")] {
        let Command::Deploy(mut deploy) = deploy_command(charm, name, 2) else { unreachable!() };
        deploy.placement = vec![Placement::Agent(agent.parse().unwrap()); 2];
        world.run(Command::Deploy(deploy)).unwrap();
        world.settle();
    }
    let id = world.integrate("app", "db").unwrap();
    for name in ["app/0", "app/1", "db/0", "db/1"] {
        world.start(name);
        world.enter(name, id).unwrap();
    }
    (world, id)
}

fn owners(view: &View, relation: RelationId) -> Vec<String> {
    let of_relation = view.bags.keys().filter(|key| key.relation == relation);
    of_relation
        .map(|key| match &key.owner {
            BagOwner::Unit(unit) => unit.to_string(),
            BagOwner::Application(application) => application.to_string(),
        })
        .collect()
}

fn write_application_bag(world: &mut World, name: &str, id: RelationId) {
    let RunnerAnswer::Granted { term, .. } = world.claim(name, 60).unwrap() else { unreachable!() };
    world
        .commit(name, |commit| {
            commit.leader_term = Some(term);
            commit.effects.bags.entry(id).or_default().application.insert("k".into(), "v".into());
        })
        .unwrap();
}

#[test]
fn a_runner_sees_its_own_units_and_the_other_side_of_their_relations() {
    let (world, id) = apart();
    let view = world.view("a1");
    let names: Vec<String> = view.units.keys().map(ToString::to_string).collect();
    assert_eq!(names, ["app/0", "app/1"]);
    assert_eq!(view.applications.keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["app"]);
    assert_eq!(view.outlines.len(), 4);
    assert_eq!(view.charms.len(), 1);
    assert!(view.machines.values().all(|machine| machine.agent.as_str() == "a1"));
    assert_eq!(view.relations[&id].members.len(), 4);
    assert_eq!(owners(&view, id), ["app/0", "app/1", "db/0", "db/1"]);
    assert_eq!(view.machines.values().next().unwrap().boot_id, "boot-a1");
}

#[test]
fn an_agent_is_told_the_ways_to_agents_with_units_that_its_own_may_reach() {
    let (mut world, _) = apart();
    world.agent("a3");
    let stranger = world.upload(DB);
    let Command::Deploy(mut deploy) = deploy_command(stranger, "stranger", 1) else { unreachable!() };
    deploy.placement = vec![Placement::Agent("a3".parse().unwrap())];
    world.run(Command::Deploy(deploy)).unwrap();
    world.settle();
    let agents = |view: &View| {
        let agent = |outline: &UnitOutline| format!("{} {}", outline.name, outline.agent.as_ref().unwrap());
        view.outlines.values().map(agent).collect::<Vec<_>>()
    };
    assert_eq!(agents(&world.view("a1")), ["app/0 a1", "app/1 a1", "db/0 a2", "db/1 a2"]);
    let told = |world: &World, agent: &str| peers(&world.root, &world.runner(agent));
    assert!(told(&world, "a1").is_empty(), "no agent has joined");
    for agent in ["a1", "a2", "a3"] {
        world.join(agent, agent);
    }
    let place = |world: &World, agent: &str| {
        let host = &world.root.agent(&agent.parse().unwrap()).unwrap().host;
        let addresses = host.addresses.clone();
        (
            agent.parse().unwrap(),
            AgentPlace { addresses, port: host.peer_port, key: Digest::of(agent.as_bytes()) },
        )
    };
    assert_eq!(told(&world, "a1"), [place(&world, "a2")].into());
    let agent = "a2".parse().unwrap();
    let host = world.root.agent(&agent).unwrap().host.clone();
    world.register(&agent, Register { peer_port: Some(17_072), ..host });
    let reached = place(&world, "a2");
    assert_eq!(reached.1.port, Some(17_072));
    assert_eq!(told(&world, "a1"), [reached].into());
    assert_eq!(told(&world, "a2"), [place(&world, "a1")].into());
    assert!(told(&world, "a3").is_empty(), "its unit is related to none");
    let nobody = Caller::Agent("a1".parse().unwrap());
    assert!(peers(&world.root, &nobody).is_empty());
}

#[test]
fn a_caller_that_is_no_runner_of_the_model_sees_nothing() {
    let (mut world, _) = apart();
    let other = world.add_model("other");
    let callers = [
        world.user(),
        Caller::Agent("a1".parse().unwrap()),
        Caller::Runner { agent: "a1".parse().unwrap(), model: other },
        Caller::Runner { agent: "a3".parse().unwrap(), model: world.model },
    ];
    for caller in callers {
        let view = view(&world.root, &caller);
        assert!(view.units.is_empty() && view.bags.is_empty() && view.relations.is_empty(), "{caller:?}");
    }
}

#[test]
fn units_of_the_own_application_elsewhere_are_hidden_but_for_peers() {
    // 2.7, section 0
    let (mut world, id) = apart();
    let placement = vec![Placement::Agent("a2".parse().unwrap())];
    world
        .run(Command::AddUnits {
            application: "app".parse().unwrap(),
            count: 1,
            placement,
            attach_storage: vec![],
        })
        .unwrap();
    world.settle();
    world.start("app/2");
    world.enter("app/2", id).unwrap();
    world.enter("app/2", RelationId(0)).unwrap();
    let view = world.view("a1");
    assert!(!owners(&view, id).contains(&"app/2".to_owned()));
    assert!(!view.relations[&id].members.contains_key(&unit("app/2")));
    assert_eq!(owners(&view, RelationId(0)), ["app/2"]);
}

#[test]
fn becoming_leader_makes_the_own_applications_bag_visible() {
    // design 3.3
    let (mut world, id) = apart();
    let placement = vec![Placement::Agent("a2".parse().unwrap())];
    world
        .run(Command::AddUnits {
            application: "app".parse().unwrap(),
            count: 1,
            placement,
            attach_storage: vec![],
        })
        .unwrap();
    world.settle();
    world.start("app/2");
    world.enter("app/2", id).unwrap();
    write_application_bag(&mut world, "app/2", id);
    let key = BagKey { relation: id, owner: BagOwner::Application("app".parse().unwrap()) };
    assert!(!world.view("a1").bags.contains_key(&key), "nobody here leads");
    assert!(world.view("a2").bags.contains_key(&key));
    world.advance(64);
    let before = world.view("a1");
    world.claim("app/0", 60).unwrap();
    let after = world.view("a1");
    assert!(after.bags.contains_key(&key));
    let (puts, _) = before.difference(&after);
    assert!(
        puts.iter().any(|put| matches!(put, periapt_host_api::view::ViewEntity::Bag(bag) if bag.key == key))
    );
    // No unit of a2 leads app any more; but a2 hosts db, whose units read app's bag from the other end.
    assert!(world.view("a2").bags.contains_key(&key));
}

#[test]
fn bags_of_former_members_stay_until_the_relation_is_removed() {
    //
    let (mut world, id) = apart();
    for name in ["db/0", "db/1"] {
        world
            .run(Command::RemoveUnit { unit: unit(name), force: None, storage: Default::default() })
            .unwrap();
        world.terminate(name).unwrap();
    }
    let view = world.view("a1");
    assert_eq!(owners(&view, id), ["app/0", "app/1", "db/0", "db/1"]);
    assert_eq!(view.relations[&id].members.len(), 2);
    world.run(Command::RemoveRelation { relation: RelationSelector::Id(id), force: None }).unwrap();
    for name in ["app/0", "app/1"] {
        world.leave(name, id).unwrap();
    }
    assert!(owners(&world.view("a1"), id).is_empty());
}

/// Returns a world with two units, each on its own host, with a subordinate that has entered the scope of their
/// relation.
fn with_subordinates() -> (World, RelationId) {
    let mut world = World::new();
    world.agent("a2");
    world.deploy_app("app", 2);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    for number in 0..2 {
        let (app, logging) = (format!("app/{number}"), format!("logging/{number}"));
        world.start(&app);
        world.enter(&app, id).unwrap();
        world.start(&logging);
        world.enter(&logging, id).unwrap();
    }
    (world, id)
}

#[test]
fn in_a_container_scope_only_what_lives_here_is_seen() {
    //
    let (mut world, id) = with_subordinates();
    assert_eq!(owners(&world.view("a1"), id), ["app/0", "logging/0"]);
    assert_eq!(owners(&world.view("a2"), id), ["app/1", "logging/1"]);
    // A runner's record may claim that the unit was told of others.
    world.tell("app/0", id, "logging/1", true);
    assert_eq!(owners(&world.view("a1"), id), ["app/0", "logging/0"]);
    assert_eq!(world.view("a1").units[&unit("app/0")].subordinates.len(), 1);
}

#[test]
fn a_former_subordinates_bag_is_seen_by_the_principal_that_was_told_of_it() {
    // its departed hook has still to run.
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.deploy_logging("logging");
    let id = world.integrate("app", "logging").unwrap();
    world.start("app/0");
    world.enter("app/0", id).unwrap();
    world.start("logging/0");
    world.enter("logging/0", id).unwrap();
    world.tell("app/0", id, "logging/0", true);
    world.run(Command::RemoveRelation { relation: RelationSelector::Id(id), force: None }).unwrap();
    world.settle();
    world.terminate("logging/0").unwrap();
    assert_eq!(owners(&world.view("a1"), id), ["app/0", "logging/0"]);
    world.tell("app/0", id, "logging/0", false);
    assert_eq!(owners(&world.view("a1"), id), ["app/0", "logging/0"], "until the relation is removed");
    world.leave("app/0", id).unwrap();
    assert!(owners(&world.view("a1"), id).is_empty());
}

#[test]
fn a_subordinate_that_was_forced_out_leaves_its_bag_to_its_principal_alone() {
    //
    let (mut world, id) = with_subordinates();
    for logging in ["logging/0", "logging/1"] {
        let force = Some(Force { max_wait: 0 });
        world.run(Command::RemoveUnit { unit: unit(logging), force, storage: Default::default() }).unwrap();
        world.settle();
        assert!(!world.has_unit(logging));
    }
    // The bag stays readable, even if the principal was never told of it.
    world.tell("app/0", id, "logging/0", true);
    world.tell("app/0", id, "logging/0", false);
    for (agent, seen) in [("a1", ["app/0", "logging/0"]), ("a2", ["app/1", "logging/1"])] {
        let view = world.view(agent);
        assert_eq!(owners(&view, id), seen);
        let principal = Some(unit(seen[0]));
        assert!(view.bags.values().all(|bag| bag.container == principal), "{:?}", view.bags);
    }
}

#[test]
fn assignments_name_models_with_units_and_the_charms_that_these_need() {
    let (mut world, _) = apart();
    let old = world.application("app").charm.digest;
    let new = world.upload(crate::world::APP);
    let (application, with) = ("app".parse().unwrap(), RefreshWith::default());
    world.run(Command::Refresh { application, charm: new, force: false, with }).unwrap();
    let found = assignments(&world.root, &"a1".parse().unwrap());
    let model = &found.models[&world.model];
    assert_eq!(model.units, 2);
    assert!(model.charms.contains(&old) && model.charms.contains(&new));
    assert!(assignments(&world.root, &"a9".parse().unwrap()).models.is_empty());
}
