//! The refusal of charms that assume features which the model does not have.

use periapt_host_api::{
    Digest, ErrorCode, JUJU_VERSION, Refusal,
    command::{Command, Deploy, RefreshWith},
};
use periapt_model::RefreshRequest;

use crate::world::{DB, World, deploy_command};

/// Uploads a charm that assumes features.
fn assuming(world: &mut World, assumes: &str) -> Digest {
    world.upload(&format!("{DB}assumes: {assumes}\n"))
}

fn deploy(world: &mut World, charm: Digest, force: bool) -> Result<(), Refusal> {
    let Command::Deploy(deploy) = deploy_command(charm, "db", 1) else { unreachable!() };
    world.run(Command::Deploy(Deploy { force, ..deploy })).map(drop)
}

fn refresh(world: &mut World, charm: Digest, force: bool) -> Result<(), Refusal> {
    let (application, with) = ("db".parse().unwrap(), RefreshWith::default());
    world.run(Command::Refresh { application, charm, force, with }).map(drop)
}

#[test]
fn what_is_missing_is_refused_before_anything_is_written() {
    for (assumes, missing) in [
        ("[k8s-api]", "charm requires feature \"k8s-api\" but model does not support it".to_owned()),
        (
            "[juju >= 4.1]",
            format!(
                "charm requires feature \"juju\" (version >= 4.1.0) but model currently supports version {JUJU_VERSION}"
            ),
        ),
    ] {
        let mut world = World::new();
        let charm = assuming(&mut world, assumes);
        let stored = world.stored.clone();
        let refusal = deploy(&mut world, charm, false).unwrap_err();
        assert_eq!(refusal.code, ErrorCode::NotSupported);
        let expected = format!(
            "cannot add application \"db\": Charm feature requirements cannot be met:\n  - {missing}\n\nFeature"
        );
        assert!(refusal.message.starts_with(&expected), "{}", refusal.message);
        assert_eq!(world.stored, stored);
        deploy(&mut world, charm, true).unwrap();
        assert_eq!(world.application("db").charm.digest, charm);
    }
}

#[test]
fn what_is_there_is_deployed_and_refreshed_without_a_word() {
    let mut world = World::new();
    let first = assuming(&mut world, "[juju >= 3.6, {any-of: [k8s-api, juju < 5]}]");
    deploy(&mut world, first, false).unwrap();
    let second = assuming(&mut world, "[juju]");
    refresh(&mut world, second, false).unwrap();
    assert_eq!(world.application("db").charm.digest, second);
}

#[test]
fn a_refresh_to_what_cannot_be_met_changes_nothing_unless_it_is_forced() {
    let mut world = World::new();
    let (first, next) = (world.upload(DB), assuming(&mut world, "[juju < 3]"));
    deploy(&mut world, first, false).unwrap();
    let stored = world.stored.clone();
    let refusal = refresh(&mut world, next, false).unwrap_err();
    assert_eq!(refusal.code, ErrorCode::NotSupported);
    let expected = "cannot refresh application \"db\": Charm feature requirements cannot be met:";
    assert!(refusal.message.starts_with(expected), "{}", refusal.message);
    assert_eq!(world.stored, stored);
    let plan = |force| RefreshRequest { application: "db".parse().unwrap(), charm: next, force };
    assert_eq!(world.plan(&plan(false)).unwrap().refusal.unwrap().code, ErrorCode::NotSupported);
    assert_eq!(world.plan(&plan(true)).unwrap().refusal, None);
    refresh(&mut world, next, true).unwrap();
    assert_eq!(world.application("db").charm.digest, next);
    // The check is for new charms; units of a deployed charm are not refused.
    let (application, placement, attach_storage) = ("db".parse().unwrap(), vec![], vec![]);
    world.run(Command::AddUnits { application, count: 1, placement, attach_storage }).unwrap();
}
