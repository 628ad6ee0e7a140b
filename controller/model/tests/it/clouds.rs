//! Clouds, credentials and SSH keys, which are stored and have no effect.

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal,
    cloud::{CloudChange, CloudDefinition, StoredClouds},
    command::{Command, ControllerCommand},
};
use serde_json::json;

use crate::world::World;

fn cloud(endpoint: &str) -> CloudDefinition {
    serde_json::from_value(json!({"type": "openstack", "endpoint": endpoint})).unwrap()
}

fn keep(world: &mut World, change: CloudChange) -> Result<(), Refusal> {
    world.control(ControllerCommand::Keep(change)).map(drop)
}

fn kept(world: &World) -> StoredClouds {
    world.root.controller().unwrap().kept.clone()
}

#[test]
fn a_cloud_is_kept_changed_and_forgotten_with_its_credentials() {
    let mut world = World::new();
    let name = || "one".parse().unwrap();
    let add = |endpoint: &str| CloudChange::AddCloud { name: name(), definition: cloud(endpoint) };
    let update = |endpoint: &str| CloudChange::UpdateCloud { name: name(), definition: cloud(endpoint) };
    assert_eq!(keep(&mut world, update("a")).unwrap_err().code, ErrorCode::NotFound);
    keep(&mut world, add("a")).unwrap();
    assert_eq!(keep(&mut world, add("b")).unwrap_err().message, "cloud \"one\" already exists");
    assert_eq!(kept(&world).clouds[&name()], cloud("a"));
    keep(&mut world, update("b")).unwrap();
    assert_eq!(kept(&world).clouds[&name()], cloud("b"));

    let credential = |auth_type: &str| CloudChange::AddCredential {
        cloud: name(),
        name: "mine".parse().unwrap(),
        auth_type: auth_type.to_owned(),
    };
    keep(&mut world, credential("userpass")).unwrap();
    keep(&mut world, credential("oauth2")).unwrap();
    assert_eq!(
        kept(&world).credentials[&name()],
        BTreeMap::from([("mine".parse().unwrap(), "oauth2".to_owned())])
    );
    assert!(keep(&mut world, credential("")).is_err());
    keep(&mut world, CloudChange::RemoveCloud { name: name() }).unwrap();
    assert!(kept(&world).is_empty());
    let gone = CloudChange::RemoveCredential { cloud: name(), name: "mine".parse().unwrap() };
    assert_eq!(keep(&mut world, gone).unwrap_err().code, ErrorCode::NotFound);
}

#[test]
fn what_is_kept_of_clouds_has_a_bound() {
    let mut world = World::new();
    let large = cloud(&"e".repeat(30 << 10));
    let refused = (0..20).find_map(|number| {
        let name = format!("cloud{number}").parse().unwrap();
        keep(&mut world, CloudChange::AddCloud { name, definition: large.clone() }).err()
    });
    assert_eq!(refused.unwrap().code, ErrorCode::QuotaExceeded);
    assert_eq!(kept(&world).clouds.len(), 8);
}

#[test]
fn keys_are_kept_once_and_forgotten_by_any_of_their_names() {
    let mut world = World::new();
    let key = |text: &str| format!("ssh-ed25519 {text}");
    let add = |world: &mut World, keys: &[String]| {
        let keys = keys.iter().map(|key| key.parse().unwrap()).collect();
        world.run(Command::AddSshKeys { keys }).map(drop)
    };
    let remove = |world: &mut World, keys: &[&str]| -> Result<(), Refusal> {
        world.run(Command::RemoveSshKeys { keys: keys.iter().map(ToString::to_string).collect() }).map(drop)
    };
    add(&mut world, &[key("AAAA jane@host"), key("BBBB")]).unwrap();
    let duplicate = add(&mut world, &[key("CCCC"), key("AAAA john@host")]).unwrap_err();
    assert!(duplicate.message.starts_with("duplicate ssh key: SHA256:"), "{duplicate}");
    assert_eq!(world.state().model().ssh_keys.len(), 2, "all or nothing");
    assert_eq!(remove(&mut world, &["jane@host", "nobody"]).unwrap_err().code, ErrorCode::NotFound);
    assert_eq!(world.state().model().ssh_keys.len(), 2, "all or nothing");
    remove(&mut world, &["jane@host", &key("BBBB")]).unwrap();
    assert!(world.state().model().ssh_keys.is_empty());
    let many: Vec<_> = (0..51).map(|number| key(&format!("A{number:03}"))).collect();
    assert_eq!(add(&mut world, &many).unwrap_err().code, ErrorCode::QuotaExceeded);
}
