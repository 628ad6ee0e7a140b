//! The scenes of the table: the plain world, with a case's changes.

use std::collections::BTreeMap;

use periapt_hook::{CallError, FileError, FileRequest};
use periapt_host_api::{
    Digest, MachineId, TaskId,
    action::TaskStatus,
    event::{Event, StorageContext},
    relation::{BagKey, BagOwner, Scope},
    resource::ResourceKey,
    secret::{SecretContext, SecretData, SecretKey, SecretRevision},
    settings::OptionValue,
    status::{Life, RelationState, StatusInfo, WorkloadStatus},
    view::{BagView, TaskView},
};
use serde_json::json;

use super::{
    table::{Case, secret, words},
    world::{DATA, DB, RING, World, batch, changed, db, departed, joined, unit},
};

/// Builds the world of a case.
pub(crate) fn scene(case: &Case) -> World {
    let leads = case.given.iter().any(|given| given == "leader");
    let mut world = if leads { World::leader() } else { World::new() };
    for given in case.given.iter().filter(|given| *given != "leader") {
        arrange(&mut world, given);
    }
    if let Some(hook) = &case.hook {
        world = set_hook(world, hook);
    }
    world
}

fn arrange(world: &mut World, given: &str) {
    let words = words(given);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let relation = |name: &str| if name == "db" { DB } else { RING };
    match words.as_slice() {
        // `members db b/2 b/10`: the members that the unit was told of.
        ["members", name, members @ ..] => world.members(relation(name), members),
        ["dying", name] => world.relation(relation(name)).life = Life::Dying,
        ["suspended", name] => world.relation(relation(name)).suspended = true,
        // The relation's view is gone, and the unit's record stays, as the controller shows it
        // (`docs/hook-model.md` section 0).
        ["removed", "by", "force", name] => {
            let relation = world.relation(relation(name));
            relation.life = Life::Dead;
            relation.state = RelationState::Dying;
            relation.members.clear();
        }
        // A subordinate of `b/1`, which sees no other unit of `b`.
        ["subordinate"] => {
            world.relation(DB).scope = Scope::Container;
            world.own_unit().principal = Some(unit("b/1"));
        }
        // `subordinate of a/0 b/0`: units of db that live, or lived, in the container of this principal.
        ["subordinate", "of", principal, units @ ..] => {
            world.relation(DB).scope = Scope::Container;
            for name in units {
                let key = BagKey { relation: DB, owner: BagOwner::Unit(unit(name)) };
                let bags = &mut world.inputs.view.bags;
                let bag = BagView { container: Some(unit(principal)), ..bags[&key].clone() };
                bags.insert(key, bag);
            }
        }
        // `opened z/3 80/tcp web`: opened for these endpoints, or for all.
        ["opened", owner, range, endpoints @ ..] => world.opened(owner, &[(range, endpoints)]),
        ["addresses", addresses @ ..] => {
            let machine = world.inputs.view.machines.get_mut(&MachineId(4)).unwrap();
            machine.addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        }
        ["egress", "of", name, subnets @ ..] => {
            world.relation(relation(name)).egress =
                subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
        }
        ["egress", subnets @ ..] => {
            let config = &mut world.inputs.view.model.as_mut().unwrap().config;
            config.egress_subnets = subnets.iter().map(|subnet| subnet.parse().unwrap()).collect();
        }
        ["option", key, value] => {
            let value = OptionValue::Text((*value).to_owned());
            world.own_application().config.insert((*key).to_owned(), value);
        }
        ["application", "status", word] => {
            let status = match *word {
                "waiting" => WorkloadStatus::Waiting,
                other => panic!("no such status: {other}"),
            };
            world.own_application().status = Some(StatusInfo::new(status, "set", super::world::now().at));
        }
        ["limit", what, number] => {
            let (limits, number) = (&mut world.inputs.limits, number.parse().unwrap());
            match *what {
                "call-bytes" => limits.call_bytes = number,
                "effect-keys" => limits.effect_keys = number,
                "statuses" => limits.statuses = number,
                "message-bytes" => limits.message_bytes = number,
                "port-ranges" => limits.port_ranges = number,
                "result-bytes" => limits.result_bytes = number,
                "task-messages" => limits.task_messages = number,
                other => panic!("no such limit: {other}"),
            }
        }
        other => panic!("nothing is known of {other:?}"),
    }
}

fn set_hook(mut world: World, hook: &str) -> World {
    let words = words(hook);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let secret = |label: Option<&str>| SecretContext { id: secret(1), label: label.map(str::to_owned) };
    let event = match words.as_slice() {
        ["created"] => Event::RelationCreated(db()),
        ["joined", name] => joined(name),
        ["changed", name] => changed(name),
        ["changed"] => Event::RelationChanged { relation: db(), remote_unit: None },
        ["departed", name] => departed(name),
        // `batch +b/3 ~b/0 -b/1`: joined, changed and departed units.
        ["batch", members @ ..] => {
            let of =
                |sign: &str| members.iter().filter_map(|name| name.strip_prefix(sign)).collect::<Vec<_>>();
            batch(&of("+"), &of("~"), &of("-"))
        }
        ["broken"] => {
            world.members(DB, &[]);
            world.relation(DB).life = Life::Dying;
            Event::RelationBroken(db())
        }
        ["action"] => {
            let parameters = json!({"level": 3, "fast": true, "target": {"dir": "/srv", "tags": ["a", "b"]}});
            let task = TaskView {
                id: TaskId(7),
                unit: unit("a/0"),
                action: "backup".to_owned(),
                parameters: parameters.as_object().cloned().unwrap(),
                group: None,
                status: TaskStatus::Running,
            };
            world.inputs.view.tasks.insert(TaskId(7), task);
            Event::Action { name: "backup".to_owned(), task: TaskId(7) }
        }
        ["attached"] => Event::StorageAttached(StorageContext {
            storage: "data/0".parse().unwrap(),
            location: "/srv/data".to_owned(),
        }),
        ["rotate"] => Event::SecretRotate(secret(Some("own"))),
        ["expired"] => Event::SecretExpired { secret: secret(Some("own")), revision: SecretRevision(1) },
        other => panic!("no such hook: {other:?}"),
    };
    world.event(event)
}

/// Returns a secret's content at the controller. The value names the owner and the revision.
pub(crate) fn content(key: SecretKey) -> Result<SecretData, CallError> {
    let whose = [(1, "mine"), (2, "theirs"), (4, "ours")];
    let found = whose.into_iter().find(|(number, _)| secret(*number) == key.id);
    let Some((_, whose)) = found else {
        return Err(CallError::NotFound(format!("secret {:?} not found", key.id.to_string())));
    };
    let value = format!("{whose}-{}", key.revision.0);
    Ok(SecretData::from_texts([("password".to_owned(), value)]).unwrap())
}

/// Returns a resource's content at the controller.
pub(crate) fn resource(key: &ResourceKey) -> Result<&'static str, CallError> {
    match key.digest == Digest::of(DATA.as_bytes()) {
        true => Ok(DATA),
        false => Err(CallError::PermissionDenied("permission denied".to_owned())),
    }
}

/// Answers a request for the hook's own files: `/tmp` is writable, the charm's files are not.
pub(crate) fn answer(
    files: &mut BTreeMap<String, String>,
    request: &FileRequest,
) -> Result<Vec<u8>, FileError> {
    match request {
        FileRequest::Read { path, at_most } => match files.get(path) {
            Some(content) if content.len() > *at_most => Err(FileError::TooLarge),
            Some(content) => Ok(content.clone().into_bytes()),
            None => Err(FileError::Absent),
        },
        FileRequest::Write { path, .. } if !path.starts_with('/') || path.starts_with("/charm/") => {
            Err(FileError::ReadOnly)
        }
        FileRequest::Write { path, .. } if !path.starts_with("/tmp/") => Err(FileError::Absent),
        FileRequest::Write { path, content } => {
            files.insert(path.clone(), content.clone());
            Ok(Vec::new())
        }
    }
}
