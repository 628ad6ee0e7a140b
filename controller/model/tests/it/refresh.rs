//! Refresh to another charm, and `resolved`.

use periapt_host_api::{
    Digest, ErrorCode, Refusal,
    command::{Command, RefreshWith, ResolveMode},
    event::Event,
    settings::OptionValue,
};

use periapt_model::{RefreshRequest, WorkerCommand};

use crate::world::{APP, DB, LOGGING, World, deploy_command, unit};

fn refresh(world: &mut World, charm: Digest, force: bool) -> Result<(), Refusal> {
    refresh_with(world, charm, force, RefreshWith::default())
}

fn refresh_with(world: &mut World, charm: Digest, force: bool, with: RefreshWith) -> Result<(), Refusal> {
    world.run(Command::Refresh { application: "app".parse().unwrap(), charm, force, with }).map(|_| ())
}

fn set(world: &mut World, key: &str, value: &str) {
    let set = [(key.to_owned(), value.to_owned())].into();
    world.run(Command::SetConfig { application: "app".parse().unwrap(), set, reset: vec![] }).unwrap();
}

#[test]
fn a_refresh_bumps_the_version_and_keeps_the_settings_that_fit() {
    // M-7
    let mut world = World::new();
    world.deploy_app("app", 1);
    set(&mut world, "port", "81");
    set(&mut world, "title", "t");
    set(&mut world, "debug", "true");
    let config = "
options:
  port: {type: string, description: d}
  title: {type: string, description: d}
";
    let next = world.upload_with(APP, Some(config));
    let before = world.application("app").clone();
    refresh(&mut world, next, false).unwrap();
    let after = world.application("app");
    assert_eq!(after.charm.digest, next);
    assert_eq!(after.charm.modified_version, before.charm.modified_version + 1);
    assert_ne!(after.config_hash, before.config_hash);
    let kept: Vec<_> = after.config.iter().collect();
    assert_eq!(kept, [(&"title".to_owned(), &OptionValue::Text("t".into()))]);
}

#[test]
fn a_charm_stays_until_the_last_unit_has_left_it() {
    // M-15
    let mut world = World::new();
    let first = world.upload_app();
    world.deploy(first, "app", 1);
    world.start("app/0");
    let second = world.upload(APP);
    refresh(&mut world, second, false).unwrap();
    assert!(world.state().charm(&first).is_some(), "app/0 still runs it");
    let shown = &world.status().applications["app"].units["app/0"];
    assert_eq!(shown.upgrading_from, "local:app-0");
    world.start("app/0");
    let back = world.commit("app/0", |commit| commit.record.charm.as_mut().unwrap().digest = first);
    assert_eq!(
        back.unwrap_err().code,
        ErrorCode::CharmReplaced,
        "a charm that is kept, and that nobody wants"
    );
}

#[test]
fn a_refresh_goes_back_to_one_of_the_last_charms_and_its_revision() {
    // M-13, M-15
    let mut world = World::new();
    let mut charms = vec![world.upload_app()];
    world.deploy(charms[0], "app", 0);
    for edition in 1..6 {
        charms.push(world.upload(&format!("{APP}# {edition}\n")));
        refresh(&mut world, charms[edition], false).unwrap();
    }
    let revision = |world: &World, charm: &Digest| world.state().charm(charm).map(|charm| charm.revision);
    let kept = |world: &World| charms.iter().map(|charm| revision(world, charm)).collect::<Vec<_>>();
    let all = [None, Some(1), Some(2), Some(3), Some(4), Some(5)];
    assert_eq!(kept(&world), all, "the last four stay beside the present one");
    for charm in &charms {
        world.work(WorkerCommand::ForgetCharm(*charm));
    }
    assert!(world.root.charm(&charms[0]).is_none());
    assert_eq!(refresh(&mut world, charms[0], false).unwrap_err().code, ErrorCode::NotFound);

    refresh(&mut world, charms[2], false).unwrap();
    assert_eq!((world.application("app").charm.digest, kept(&world)), (charms[2], all.to_vec()));
    let former = [1, 3, 4, 5].map(|edition: usize| charms[edition]);
    assert_eq!(world.application("app").former_charms, former);

    world
        .run(Command::RemoveApplication {
            application: "app".parse().unwrap(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    world.settle();
    assert!(kept(&world).iter().all(Option::is_none), "they go with their application");
}

#[test]
fn the_same_charm_is_refused_unless_force_is_new() {
    let mut world = World::new();
    let charm = world.upload_app();
    world.deploy(charm, "app", 0);
    let refusal = refresh(&mut world, charm, false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::AlreadyExists);
    assert_eq!(refusal.message, "cannot refresh application \"app\": already running charm \"local:app-0\"");
    let version = world.application("app").charm.modified_version;
    refresh(&mut world, charm, true).unwrap();
    assert!(world.application("app").force_charm);
    assert_eq!(world.application("app").charm.modified_version, version);
    assert!(refresh(&mut world, charm, true).is_err());
}

#[test]
fn what_is_changed_with_a_charm_is_changed_all_or_not_at_all() {
    let mut world = World::new();
    let charm = world.upload_app();
    world.deploy(charm, "app", 0);
    let config = "options:\n  colour: {type: string, default: red, description: d}\n";
    let next = world.upload_with(APP, Some(config));
    let with = |key: &str, trust| RefreshWith {
        config: [(key.to_owned(), "blue".to_owned())].into(),
        trust,
        ..RefreshWith::default()
    };
    let before = world.application("app").clone();
    let refusal = refresh_with(&mut world, next, false, with("port", true)).unwrap_err();
    assert_eq!(
        refusal.message,
        "cannot refresh application \"app\": unknown option \"port\"; known are colour"
    );
    assert_eq!(*world.application("app"), before);

    refresh_with(&mut world, next, false, with("colour", true)).unwrap();
    let after = world.application("app").clone();
    assert_eq!((after.charm.digest, after.trust), (next, true));
    assert_eq!(after.config["colour"], OptionValue::Text("blue".into()));

    // A refresh to the same charm with other settings only changes the settings.
    let red = RefreshWith { config: [("colour".to_owned(), "red".to_owned())].into(), ..with("", false) };
    refresh_with(&mut world, next, false, red).unwrap();
    let last = world.application("app");
    assert_eq!((last.charm, last.trust), (after.charm, true));
    assert_ne!(last.config_hash, after.config_hash);
}

#[test]
fn e09_limits_and_endpoints_in_use_must_hold() {
    // U-37
    let mut world = World::new();
    world.deploy_app("app", 0);
    world.deploy_db("db", 0);
    world.deploy_db("db2", 0);
    world.integrate("app", "db").unwrap();
    world.integrate("app", "db2").unwrap();
    let limited = world.upload(&APP.replace("{interface: sql}", "{interface: sql, limit: 1}"));
    let refusal = refresh(&mut world, limited, false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::QuotaExceeded);
    assert!(refusal.message.contains("maximum relation limit of 1 for app:db"));
    let without = world.upload(&APP.replace("db: {interface: sql}", "database: {interface: sql}"));
    let refusal = refresh(&mut world, without, true).unwrap_err();
    assert_eq!(
        refusal.message,
        "cannot refresh application \"app\": would break relation \"app:db db:server\": the new charm has no \
         endpoint \"db\""
    );
    refresh(&mut world, limited, true).unwrap();
}

#[test]
fn each_thing_in_use_that_would_change_is_named_and_force_does_not_help() {
    // U-37
    let mut world = World::new();
    let storage = "storage:\n  data: {type: filesystem, multiple: {range: 0-3}, location: /srv}\n";
    let charm = world.upload(&format!("{APP}{storage}"));
    world.deploy(charm, "app", 1);
    world.deploy_db("db", 0);
    world.integrate("app", "db").unwrap();
    let added = [("data".parse().unwrap(), "3,10M".parse().unwrap())].into();
    world.run(Command::AddStorage { unit: unit("app/0"), storage: added }).unwrap();
    for (from, to, reason) in [
        (
            "db: {interface: sql}",
            "db: {interface: nosql}",
            "endpoint \"db\" would speak \"nosql\", not \"sql\"",
        ),
        (
            "db: {interface: sql}\n  logs: {interface: syslog}\nprovides:",
            "logs: {interface: syslog}\nprovides:\n  db: {interface: sql}",
            "endpoint \"db\" would be a provider, and is a requirer",
        ),
        (
            "db: {interface: sql}",
            "db: {interface: sql, scope: container}",
            "endpoint \"db\" would have the scope container",
        ),
        (storage, "", "in use storage \"data\" removed"),
        ("0-3", "0-2", "existing storage \"data\" range contracted: a unit has 3, not 0-2"),
        (
            "location: /srv",
            "location: /mnt",
            "existing storage \"data\" location changed from \"/srv/data/0\" to \"/mnt/data/0\"",
        ),
        (
            "location: /srv",
            "location: /srv, read-only: true",
            "existing storage \"data\" read-only changed from false to true",
        ),
    ] {
        let present = format!("{APP}{storage}");
        assert!(present.contains(from), "{from}");
        let charm = world.upload(&present.replacen(from, to, 1));
        for force in [false, true] {
            let refusal = refresh(&mut world, charm, force).unwrap_err();
            assert_eq!(refusal.code, ErrorCode::Conflict, "{refusal:?}");
            assert!(refusal.message.ends_with(reason), "{} is not {reason}", refusal.message);
        }
    }
    assert_eq!(world.application("app").charm.digest, charm);
}

#[test]
fn a_plan_says_what_differs_and_what_is_in_the_way_and_changes_nothing() {
    let mut world = World::new();
    world.deploy_app("app", 1);
    set(&mut world, "port", "81");
    world.deploy_db("db", 0);
    world.integrate("app", "db").unwrap();
    let next = world
        .upload_with(&APP.replace("db: {interface: sql}", "cache: {interface: kv}"), Some("options: {}"));
    let before = world.stored.clone();
    let request = |charm, force| RefreshRequest { application: "app".parse().unwrap(), charm, force };
    let plan = world.plan(&request(next, false)).unwrap();
    assert_eq!((plan.from.as_str(), plan.to.as_str(), plan.to_digest), ("local:app-0", "app", next));
    let endpoints: Vec<_> = plan.difference.endpoints.keys().map(|name| name.as_str()).collect();
    assert_eq!(endpoints, ["cache", "db"]);
    assert_eq!(plan.difference.dropped_settings, [("port".to_owned(), OptionValue::Integer(81))].into());
    let refusal = refresh(&mut world, next, false).unwrap_err();
    assert_eq!(plan.refusal, Some(refusal));
    assert_eq!(world.stored, before);
    let fits = world.upload_with(APP, Some("options: {}"));
    assert_eq!(world.plan(&request(fits, false)).unwrap().refusal, None);
    let unknown = world.plan(&request(Digest::of(b"?"), true)).unwrap_err();
    assert_eq!(unknown.code, ErrorCode::NotFound);
}

#[test]
fn another_kind_of_charm_is_refused() {
    let mut world = World::new();
    world.deploy_app("app", 0);
    let logging = world.upload(LOGGING);
    assert!(refresh(&mut world, logging, true).unwrap_err().message.contains("subordinacy"));
    let db = world.upload(DB);
    assert!(refresh(&mut world, db, false).unwrap_err().message.contains("\"db\" is not \"app\""));
    assert_eq!(refresh(&mut world, Digest::of(b"?"), false).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn new_peer_endpoints_get_their_relation() {
    let mut world = World::new();
    world.deploy_app("app", 0);
    let next = world.upload(&APP.replace("peers:", "peers:\n  gossip: {interface: gossip}"));
    refresh(&mut world, next, false).unwrap();
    let peers: Vec<String> = world.state().relations().map(|relation| relation.describe()).collect();
    assert_eq!(peers, ["app:ring", "app:gossip"]);
}

#[test]
fn c16_a_unit_that_is_not_in_error_is_not_resolved() {
    // U-31
    let mut world = World::new();
    world.deploy_app("app", 1);
    world.start("app/0");
    let resolve = |mode| Command::Resolve { unit: unit("app/0"), mode };
    let refusal = world.run(resolve(ResolveMode::Retry)).unwrap_err();
    assert_eq!(refusal.message, "unit \"app/0\" is not in an error state");
    world.fail("app/0", Event::ConfigChanged);
    world.run(resolve(ResolveMode::NoRetry)).unwrap();
    assert_eq!(world.view("a1").units[&unit("app/0")].resolved, Some(ResolveMode::NoRetry));
    let refusal = world.run(resolve(ResolveMode::Retry)).unwrap_err();
    assert_eq!(refusal.message, "cannot set resolved mode for unit \"app/0\": already resolved");
    world.commit("app/0", |commit| commit.transitions.clear_resolved = true).unwrap();
    assert_eq!(world.unit("app/0").resolved, None);
}

#[test]
fn a_charm_is_forgotten_only_when_no_model_uses_it() {
    // M-15
    let mut world = World::new();
    let (used, unused) = (world.upload(DB), world.upload(&DB.replace("summary: s", "summary: t")));
    assert_ne!(used, unused);
    world.deploy(used, "db", 1);
    for digest in [used, unused] {
        world.work(WorkerCommand::ForgetCharm(digest));
    }
    assert!(world.root.charm(&used).is_some() && world.root.charm(&unused).is_none());
    world.run(deploy_command(unused, "other", 1)).unwrap_err();
    world
        .run(Command::RemoveApplication {
            application: "db".parse().unwrap(),
            force: None,
            storage: Default::default(),
        })
        .unwrap();
    world.settle();
    world.work(WorkerCommand::ForgetCharm(used));
    assert!(world.root.charm(&used).is_none());
}
