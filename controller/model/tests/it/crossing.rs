//! Cross-model relations: offers, consumed offers, and the copies within their bounds.

use periapt_host_api::{
    ErrorCode, ModelUuid, Refusal, RelationId,
    command::{Command, ControllerCommand, RefreshWith, RelationSelector},
    commit::{PortRequest, UnitCommit},
    status::Life,
};
use periapt_model::{
    Entity, LoadError, Root, RootBuilder, WorkSchedule, WorkerCommand, due_work,
    entity::{CrossModelSide, EntityKey, ModelKey},
    ingress_rules, offers_of_model,
};

use crate::world::{APP, World};

/// Two models: `m` has `app`, and `n` has `db` with an offer.
struct Two {
    world: World,
    there: ModelUuid,
}

impl Two {
    fn offered(units: u32) -> Self {
        let mut world = World::new();
        world.deploy_app("app", 1);
        world.start("app/0");
        Self::offered_to(world, units)
    }

    /// Adds the model `n` with its offer to a world that has `app`.
    fn offered_to(mut world: World, units: u32) -> Self {
        let there = world.other_model("n", &["a1"]);
        world.within(there, |world| {
            for unit in world.deploy_db("db", units) {
                world.start(&unit.to_string());
            }
            world.offer("db", &["server"]).unwrap();
        });
        Self { world, there }
    }

    fn consumed(units: u32) -> Self {
        let mut two = Self::offered(units);
        two.world.consume("n.db", None).unwrap();
        two
    }

    /// Returns two related models, all units of which have entered.
    fn related(units: u32) -> (Self, RelationId, RelationId) {
        let mut two = Self::consumed(units);
        let here = two.world.integrate("app:db", "db").unwrap();
        two.world.settle();
        two.world.enter("app/0", here).unwrap();
        let there = two.there().unwrap();
        for unit in 0..units {
            two.world.within(two.there, |world| world.enter(&format!("db/{unit}"), there)).unwrap();
        }
        two.world.settle();
        (two, here, there)
    }

    /// Returns the relation in the offering model.
    fn there(&self) -> Option<RelationId> {
        let state = self.world.root.model(&self.there).unwrap();
        let relation = state.relations().find(|relation| relation.life != Life::Dead)?;
        Some(relation.id)
    }

    fn here(&self) -> Option<RelationId> {
        let mut relations = self.world.state().relations();
        relations.find(|relation| relation.cross.is_some()).map(|relation| relation.id)
    }

    fn refused(&mut self, command: Command) -> Refusal {
        self.world.run(command).unwrap_err()
    }
}

#[test]
fn what_cannot_be_offered_is_refused_by_name() {
    let mut world = World::new();
    world.deploy_app("app", 0);
    world.deploy_logging("logging");
    for (application, endpoints, code, text) in [
        (
            "app",
            &["nothing"][..],
            ErrorCode::NotFound,
            "it has no endpoint \"nothing\"; its endpoints are db",
        ),
        ("app", &["ring"], ErrorCode::BadRequest, "endpoint ring is only for units of this model"),
        ("logging", &["sink"], ErrorCode::BadRequest, "endpoint sink is only for units of this model"),
        ("app", &[], ErrorCode::BadRequest, "name at least one endpoint"),
        ("none", &["db"], ErrorCode::NotFound, "application \"none\" not found"),
    ] {
        let refusal = world.offer(application, endpoints).unwrap_err();
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(refusal.message.contains(text), "{refusal}");
    }
    world.offer("app", &["web", "juju-info"]).unwrap();
}

#[test]
fn what_cannot_be_consumed_is_refused_by_name() {
    let mut two = Two::offered(1);
    for (offer, name, code, text) in [
        ("n.nothing", None, ErrorCode::NotFound, "offer \"n.nothing\" not found"),
        ("other/n.db", None, ErrorCode::NotFound, "offer \"other/n.db\" not found"),
        ("n.db", Some("app"), ErrorCode::AlreadyExists, "an application \"app\" exists already"),
    ] {
        let refusal = two.world.consume(offer, name).unwrap_err();
        assert_eq!(refusal.code, code, "{refusal}");
        assert!(refusal.message.contains(text), "{refusal}");
    }
    let own = two.world.within(two.there, |world| world.consume("n.db", Some("x"))).unwrap_err();
    assert!(own.message.contains("it is an offer of this model"), "{own}");

    two.world.consume("n.db", None).unwrap();
    two.world.consume("n.db", None).unwrap();
    let charm = two.world.upload(crate::world::DB);
    let taken = two.refused(crate::world::deploy_command(charm, "db", 0));
    assert!(taken.message.contains("saas application with same name already exists"), "{taken}");
    two.world.consume("n.db", Some("twice")).unwrap();
    let both = two.world.integrate("db", "twice").unwrap_err();
    assert!(both.message.contains("no relations found") || both.message.contains("both ends"), "{both}");
    let unknown = two.world.integrate("app", "db:nothing").unwrap_err();
    assert!(unknown.message.contains("saas application \"db\" offers no \"nothing\""), "{unknown}");
}

#[test]
fn an_offer_is_changed_but_not_what_is_in_use() {
    let (mut two, _, _) = Two::related(1);
    let there = two.there;
    let refusal = two.world.within(there, |world| world.offer("db", &["juju-info"])).unwrap_err();
    assert!(refusal.message.contains("endpoint server of offer \"db\" is in use"), "{refusal}");
    two.world.within(there, |world| world.offer("db", &["server", "juju-info"])).unwrap();
    let without = two.world.upload("name: db\nsummary: s\ndescription: d\n");
    let (application, with) = ("db".parse().unwrap(), RefreshWith::default());
    let refresh = Command::Refresh { application, charm: without, force: false, with };
    let refusal = two.world.within(there, |world| world.run(refresh)).unwrap_err();
    assert!(refusal.message.contains("would break relation"), "{refusal}");
}

#[test]
fn a_bag_is_there_when_its_unit_joins() {
    let (two, here, there) = Two::related(2);
    let bag = two.world.bag(here, "db/1").unwrap();
    assert_eq!((bag.settings["private-address"].as_str(), bag.version), ("10.0.0.1", 1));
    let state = two.world.root.model(&two.there).unwrap();
    let remote = state.remote_applications().next().unwrap().name.to_string();
    assert_eq!(remote.len(), "remote-".len() + 32);
    let members: Vec<String> = state.members(&there).map(|(unit, _)| unit.to_string()).collect();
    assert_eq!(members, ["db/0", "db/1", &format!("{remote}/0")]);
    // A runner sees only the copy in its own model.
    let view = two.world.view("a1");
    assert_eq!(view.relations[&here].members.len(), 3);
    assert_eq!(view.relations[&here].remote.as_ref().unwrap().model, two.there);
    assert!(!view.outlines.keys().any(|unit| unit.application().as_str() == "db"));
}

#[test]
fn a_consumer_that_comes_too_late_for_a_limit_loses_its_relation() {
    let mut world = World::new();
    world.deploy_app("app", 0);
    world.offer("app", &["web"]).unwrap();
    let client = APP
        .replace("name: app", "name: client")
        .replace("logs: {interface: syslog}", "site: {interface: http}");
    let mut consumers = Vec::new();
    for name in ["x", "y"] {
        let model = world.other_model(name, &[]);
        world.within(model, |world| {
            let charm = world.upload(&client);
            world.deploy(charm, "client", 0);
            world.consume("m.app", None).unwrap();
        });
        consumers.push(model);
    }
    // Both are related before the offering model learns of either.
    for model in &consumers {
        world.within(*model, |world| world.integrate("client:site", "app:web")).unwrap();
    }
    world.settle();
    let left = consumers.iter().filter(|model| {
        world.root.model(model).unwrap().relations().any(|relation| relation.cross.is_some())
    });
    assert_eq!(left.count(), 1, "one relation is the most (R-5)");
    let late = world.within(consumers[1], |world| world.integrate("client:site", "app:web")).unwrap_err();
    assert_eq!(late.code, ErrorCode::QuotaExceeded, "{late}");
}

#[test]
fn what_the_offerer_removed_before_the_consumer_heard_of_it_stays_removed() {
    let mut two = Two::consumed(1);
    two.world.integrate("app:db", "db").unwrap();
    two.world.work(WorkerCommand::CopyFromOthers(two.there));
    let relation = RelationSelector::Id(two.there().unwrap());
    two.world
        .within(two.there, |world| world.run(Command::RemoveRelation { relation, force: None }))
        .unwrap();
    two.world.settle();
    assert_eq!((two.here(), two.there()), (None, None));
}

#[test]
fn a_consumers_model_that_goes_in_one_commit_takes_the_relation_with_it() {
    let mut world = World::new();
    world.deploy_app("app", 0);
    let mut two = Two::offered_to(world, 1);
    two.world.consume("n.db", None).unwrap();
    two.world.integrate("app:db", "db").unwrap();
    two.world.settle();
    assert!(two.there().is_some());
    let model = two.world.model;
    two.world.control(ControllerCommand::DestroyModel { model, force: None, storage: None }).unwrap();
    two.world.settle();
    assert!(two.world.root.model(&model).is_none());
    assert_eq!(two.there(), None, "nothing told the offering model that the consumer is gone");
}

#[test]
fn an_offer_that_goes_before_the_relation_is_made_ends_it() {
    let mut two = Two::consumed(1);
    two.world.integrate("app:db", "db").unwrap();
    let offer = "db".parse().unwrap();
    two.world.within(two.there, |world| world.run(Command::RemoveOffer { offer, force: None })).unwrap();
    two.world.settle();
    assert_eq!((two.here(), two.there()), (None, None));
    let status = two.world.status();
    assert_eq!(status.remote_applications["db"].application_status.current, "terminated");
    // The new offer has another id, and can be consumed in place of the old one.
    two.world.within(two.there, |world| world.offer("db", &["server"])).unwrap();
    assert!(two.world.integrate("app:db", "db").is_err());
    two.world.consume("n.db", None).unwrap();
    two.world.integrate("app:db", "db").unwrap();
}

#[test]
fn a_stranger_fills_no_more_of_a_model_than_there_is_room_for() {
    let (mut two, here, there) = Two::related(34);
    let seen = |two: &Two| {
        let members = two.world.state().members(&here).map(|(unit, _)| unit.application().as_str());
        members.filter(|application| *application == "db").count()
    };
    assert_eq!(seen(&two), 34);
    for unit in 0..34 {
        two.world.within(two.there, |world| {
            let write = |commit: &mut periapt_host_api::commit::UnitCommit| {
                let bag = &mut commit.effects.bags.entry(there).or_default().unit;
                for key in 0..4 {
                    bag.insert(format!("k{key}"), "x".repeat(60_000));
                }
            };
            world.commit(&format!("db/{unit}"), write).unwrap();
        });
    }
    let due = |world: &World| {
        due_work(&world.root, world.now, world.lease_now_ms, &WorkSchedule::default()).0.pop()
    };
    let copy = WorkerCommand::CopyFromOthers(two.world.model);
    assert_eq!(due(&two.world).as_ref(), Some(&copy));
    let mut steps = 0;
    while let Some(command) = due(&two.world) {
        assert_eq!(command, copy);
        two.world.work(command);
        steps += 1;
    }
    assert!(steps > 10, "{steps} commits are few for 8 MiB");
    let seen = seen(&two);
    assert!((33..35).contains(&seen), "{seen} units with 240 KB each fit into 8 MiB");
}

#[test]
fn ports_are_open_for_consumers_alone_where_nothing_is_exposed() {
    let (mut two, _, there) = Two::related(1);
    let consumer = |world: &World| ingress_rules(world.state(), &world.unit("db/0").machine.unwrap());
    two.world.within(two.there, |world| {
        world
            .commit("db/0", |commit| {
                let (range, endpoint) = ("3306/tcp".parse().unwrap(), Some("server".parse().unwrap()));
                commit.effects.ports.open.insert(PortRequest { range, endpoint });
            })
            .unwrap();
    });
    let rules = two.world.within(two.there, |world| consumer(world));
    let shown: Vec<String> = rules
        .iter()
        .flat_map(|(range, from)| from.iter().map(move |from| format!("{range} from {from}")))
        .collect();
    assert_eq!(shown, ["3306/tcp from 10.0.0.1/32"]);
    // A charm's own text in its bag opens no firewall.
    let here = two.here().unwrap();
    two.world
        .commit("app/0", |commit| {
            let bag = &mut commit.effects.bags.entry(here).or_default().unit;
            bag.insert("egress-subnets".into(), "0.0.0.0/0".into());
        })
        .unwrap();
    two.world.settle();
    assert_eq!(two.world.within(two.there, |world| consumer(world)), rules);
    two.world
        .within(two.there, |world| {
            world.run(Command::SuspendRelation { relation: there, message: String::new() })
        })
        .unwrap();
    assert!(two.world.within(two.there, |world| consumer(world)).is_empty());
}

#[test]
fn a_consumer_says_where_its_traffic_comes_from() {
    let mut two = Two::consumed(1);
    let many = vec!["192.0.2.0/24"; 33];
    assert_eq!(two.world.integrate_via("app:db", "db", &many).unwrap_err().code, ErrorCode::QuotaExceeded);
    let here = two.world.integrate_via("app:db", "db", &["192.0.2.0/24", "2001:db8::/64"]).unwrap();
    two.world.settle();
    two.world.enter("app/0", here).unwrap();
    two.world.settle();
    let bag = two.world.bag(here, "app/0").unwrap();
    assert_eq!(bag.settings["egress-subnets"], "192.0.2.0/24,2001:db8::/64");
    let there = two.there().unwrap();
    let cross = two.world.root.model(&two.there).unwrap().relation(&there).unwrap().cross.clone().unwrap();
    let CrossModelSide::Offerer { ingress } = cross.side else { panic!("{cross:?}") };
    let shown: Vec<_> = ingress.iter().map(ToString::to_string).collect();
    assert_eq!(shown, ["192.0.2.0/24", "2001:db8::/64"]);

    two.world.deploy_db("own", 1);
    let refusal = two.world.integrate_via("app:db", "own", &["192.0.2.0/24"]).unwrap_err();
    assert!(refusal.message.contains("--via option can only be used"), "{refusal:?}");
}

#[test]
fn status_shows_what_is_offered_and_what_is_consumed() {
    let (mut two, here, _) = Two::related(1);
    two.world.claim("app/0", 60).unwrap();
    two.world.settle();
    let status = two.world.status();
    let remote = &status.remote_applications["db"];
    assert_eq!(
        (remote.url.as_str(), &remote.relations["server"][..]),
        ("admin/n.db", &["app".to_owned()][..])
    );
    let shown = status.relations.iter().find(|relation| relation.id == here.0).unwrap();
    assert_eq!((shown.provider.as_str(), shown.status.as_str()), ("db:server", "joined"));
    let status = two.world.within(two.there, |world| world.status());
    let offer = &status.offers["db"];
    assert_eq!((offer.active_connected_count, offer.total_connected_count), (1, 1));
    assert_eq!(offer.charm, "local:db-0");
    let state = two.world.root.model(&two.there).unwrap();
    let details = offers_of_model(&two.world.root, state, &two.world.user());
    let connection = &details[0].connections[0];
    assert_eq!((connection.username.as_str(), connection.source_model_uuid), ("admin", two.world.model));
    let cross = state.relation(&connection.relation_id).unwrap().cross.clone().unwrap();
    let CrossModelSide::Offerer { ingress } = cross.side else { panic!("{cross:?}") };
    assert_eq!(connection.ingress_subnets, ingress);
}

#[test]
fn large_bags_of_another_model_are_copied_one_by_one() {
    let (mut two, here, there) = Two::related(3);
    // Each bag fits into a commit of its own. As JSON, a control character takes six bytes.
    for (unit, value) in
        [("db/0", "x".repeat(250_000)), ("db/1", "\u{1}".repeat(140_000)), ("db/2", "\u{1}".repeat(140_000))]
    {
        let write = |commit: &mut UnitCommit| {
            commit.effects.bags.entry(there).or_default().unit.insert("k".into(), value.clone());
        };
        two.world.within(two.there, |world| world.commit(unit, write)).unwrap();
    }
    two.world.settle();
    for (unit, length) in [("db/0", 250_000), ("db/1", 140_000), ("db/2", 140_000)] {
        assert_eq!(two.world.bag(here, unit).unwrap().settings["k"].len(), length, "{unit}");
    }
}

#[test]
fn a_state_is_the_same_in_whatever_order_its_entities_come() {
    let (two, ..) = Two::related(2);
    let mut stored: Vec<(EntityKey, Entity)> = two.world.stored.clone().into_iter().collect();
    let revision = two.world.root.revision();
    let built = |stored: &[(EntityKey, Entity)]| {
        let mut builder = RootBuilder::default();
        for (key, entity) in stored {
            builder.add(key.clone(), entity.clone()).unwrap();
        }
        format!("{:?}", builder.finish(revision).unwrap())
    };
    let state = built(&stored);
    assert!(state.contains("CrossModel"), "the two models have a relation in common");
    for _ in 0..stored.len() {
        stored.rotate_left(1);
        assert!(built(&stored) == state, "from {:?} on", stored[0].0);
    }
    stored.reverse();
    assert!(built(&stored) == state);
}

#[test]
fn entities_that_make_no_state_are_refused_by_their_keys() {
    let (two, ..) = Two::related(1);
    let (model, revision) = (EntityKey::InModel(two.there, ModelKey::Model), two.world.root.revision());
    let mut orphans = two.world.stored.clone();
    let (key, own) = orphans.remove_entry(&model).unwrap();
    let refused = Root::from_entities(orphans, revision).unwrap_err();
    let LoadError::Orphan(orphan) = &refused else { panic!("{refused}") };
    assert!(matches!(&**orphan, EntityKey::InModel(uuid, _) if *uuid == two.there), "{refused}");
    let elsewhere = EntityKey::InModel(two.world.model, ModelKey::Model);
    let refused = Root::from_entities([(elsewhere.clone(), own.clone())], revision).unwrap_err();
    assert_eq!(refused, LoadError::Misplaced(Box::new(elsewhere)));
    Root::from_entities([(key, own)], revision).unwrap();
}
