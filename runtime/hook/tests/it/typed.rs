//! The typed interface by names: functions and arguments as the journal writes them.

use periapt_hook::{
    BagSelector, CallAnswer, CallError, CharmStatus, DueCondition, GetMode, LaterEvent, NewOwner, OwnBag,
    Ports, SecretMetadata,
};
use periapt_host_api::{RelationId, logs::LogLevel, secret::RotatePolicy};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{cases::Stage, world::now};

/// Makes a call, and returns the answer as the journal would hold it.
pub(crate) fn call(stage: &mut Stage, function: &str, arguments: Value) -> Value {
    let context = &mut stage.context;
    match function {
        "config.get" => as_json(context.config_get(&one::<String>(arguments))),
        "config.get-all" => as_json(context.config_get_all()),
        "relations.ids" => as_json(context.relation_ids(&one::<String>(arguments))),
        "relations.endpoint" => as_json(context.relation_endpoint(one(arguments))),
        "relations.remote-application" => as_json(context.relation_remote_application(one(arguments))),
        "relations.members" => as_json(context.relation_members(one(arguments))),
        "relations.get" => {
            let (relation, bag): (RelationId, BagName) = read(arguments);
            asked(stage, |context| context.relation_get(now(), relation, &bag.clone().into()))
        }
        "relations.get-value" => {
            let (relation, bag, key): (RelationId, BagName, String) = read(arguments);
            asked(stage, |context| context.relation_get_value(now(), relation, &bag.clone().into(), &key))
        }
        "relations.set" => {
            let (relation, bag, changes): (RelationId, OwnBagName, Vec<(String, String)>) = read(arguments);
            asked(stage, |context| context.relation_set(now(), relation, bag.into(), &changes))
        }
        "ports.open" => {
            let (ports, endpoints): (PortsName, Vec<String>) = read(arguments);
            as_json(context.open_ports(ports.into(), &endpoints))
        }
        "ports.close" => {
            let (ports, endpoints): (PortsName, Vec<String>) = read(arguments);
            as_json(context.close_ports(ports.into(), &endpoints))
        }
        "ports.opened" => as_json(context.opened_ports()),
        "status.set" => {
            let (status, message): (StatusName, String) = read(arguments);
            as_json(context.status_set(now(), status.into(), &message))
        }
        "status.get" => as_json(context.status_get()),
        "status.set-application" => {
            let (status, message): (StatusName, String) = read(arguments);
            asked(stage, |context| context.status_set_application(now(), status.into(), &message))
        }
        "status.get-application" => asked(stage, |context| context.status_get_application(now())),
        "status.set-application-version" => {
            as_json(context.set_application_version(now(), &one::<String>(arguments)))
        }
        "leadership.is-leader" => asked(stage, |context| context.is_leader(now())),
        "leadership.get-settings" => as_json(context.leader_get()),
        "leadership.set-settings" => {
            let changes: Vec<(String, String)> = one(arguments);
            asked(stage, |context| context.leader_set(now(), &changes))
        }
        "state.get" => as_json(context.state_get(&one::<String>(arguments))),
        "state.get-all" => as_json(context.state_get_all()),
        "state.set" => as_json(context.state_set(&one::<Vec<_>>(arguments))),
        "state.delete" => as_json(context.state_delete(&one::<String>(arguments))),
        "events.emit-later" => {
            let later = LaterEvent::from(one::<LaterName>(arguments));
            asked(stage, |context| context.emit_later(now(), &later))
        }
        "events.cancel" => as_json(context.cancel_event(one(arguments))),
        "events.pending" => as_json(context.pending_events()),
        "network.get" => {
            let (binding, relation): (String, Option<RelationId>) = read(arguments);
            as_json(context.network_get(&binding, relation))
        }
        "goal-state.get" => as_json(context.goal_state()),
        "actions.params" => as_json(context.action_params()),
        "actions.param" => as_json(context.action_param(&one::<String>(arguments))),
        "actions.set-results" => as_json(context.action_set(&one::<Vec<_>>(arguments))),
        "actions.log" => as_json(context.action_log(now(), &one::<String>(arguments))),
        "actions.fail" => as_json(context.action_fail(one::<Option<String>>(arguments).as_deref())),
        "storage.list" => as_json(context.storage_list(one::<Option<String>>(arguments).as_deref())),
        "storage.get" => as_json(context.storage_get(&one::<String>(arguments))),
        "storage.add" => {
            let (name, count): (String, u32) = read(arguments);
            as_json(context.storage_add(&name, count))
        }
        "resources.get" => {
            let name: String = one(arguments);
            asked(stage, |context| context.resource_get(&name))
        }
        "identity.private-address" => as_json(context.private_address()),
        "identity.public-address" => as_json(context.public_address()),
        "identity.model-uuid" => as_json(context.model_uuid()),
        "log.write" => {
            let (level, message): (LogLevel, String) = read(arguments);
            context.log(now(), level, &message);
            json!({"Ok": null})
        }
        _ => secret(stage, function, arguments),
    }
}

fn secret(stage: &mut Stage, function: &str, arguments: Value) -> Value {
    match function {
        "secrets.add" => {
            let (owner, content, said): (OwnerName, Vec<(String, String)>, SecretOptions) = read(arguments);
            let owner = match owner {
                OwnerName::Application => NewOwner::Application,
                OwnerName::Unit => NewOwner::Unit,
            };
            let content = bytes(content);
            let (metadata, expire) = said.parts();
            asked(stage, |context| {
                context.secret_add(now(), owner, &content, metadata.clone(), expire.as_deref())
            })
        }
        "secrets.set" => {
            let (uri, content, said): (String, Option<Vec<(String, String)>>, SecretOptions) =
                read(arguments);
            let content = content.map(bytes);
            let (metadata, expire) = said.parts();
            asked(stage, |context| {
                context.secret_set(now(), &uri, content.as_ref(), metadata.clone(), expire.as_deref())
            })
        }
        "secrets.get" => {
            let (uri, label, mode): (Option<String>, Option<String>, ModeName) = read(arguments);
            let mode = match mode {
                ModeName::Tracked => GetMode::Tracked,
                ModeName::Peek => GetMode::Peek,
                ModeName::Refresh => GetMode::Refresh,
            };
            let texts = |values: Vec<(String, Vec<u8>)>| -> Vec<(String, String)> {
                values.into_iter().map(|(key, value)| (key, String::from_utf8(value).unwrap())).collect()
            };
            asked(stage, |context| {
                context
                    .secret_get(uri.as_deref(), label.as_deref(), mode)
                    .map(|result: Result<_, CallError>| result.map(texts))
            })
        }
        "secrets.info" => {
            let (uri, label): (Option<String>, Option<String>) = read(arguments);
            asked(stage, |context| context.secret_info(now(), uri.as_deref(), label.as_deref()))
        }
        "secrets.ids" => asked(stage, |context| context.secret_ids(now())),
        "secrets.grant" => {
            let (uri, relation, unit): (String, RelationId, Option<String>) = read(arguments);
            asked(stage, |context| context.secret_grant(now(), &uri, relation, unit.as_deref()))
        }
        "secrets.revoke" => {
            let (uri, reader): (String, String) = read(arguments);
            asked(stage, |context| context.secret_revoke(now(), &uri, &reader))
        }
        "secrets.remove" => {
            let (uri, revision): (String, Option<u32>) = read(arguments);
            asked(stage, |context| context.secret_remove(now(), &uri, revision))
        }
        other => panic!("no such function: {other}"),
    }
}

fn as_json<T: Serialize>(answer: T) -> Value {
    serde_json::to_value(answer).unwrap()
}

fn asked<T: Serialize>(
    stage: &mut Stage,
    call: impl FnMut(&mut periapt_hook::HookContext) -> CallAnswer<T>,
) -> Value {
    as_json(stage.ask(call))
}

fn read<T: DeserializeOwned>(arguments: Value) -> T {
    serde_json::from_value(arguments.clone()).unwrap_or_else(|error| panic!("{arguments}: {error}"))
}

fn one<T: DeserializeOwned>(arguments: Value) -> T {
    read::<(T,)>(arguments).0
}

fn bytes(content: Vec<(String, String)>) -> Vec<(String, Vec<u8>)> {
    content.into_iter().map(|(key, value)| (key, value.into_bytes())).collect()
}

#[derive(Clone, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum BagName {
    Unit(String),
    Application(String),
}

impl From<BagName> for BagSelector {
    fn from(bag: BagName) -> Self {
        match bag {
            BagName::Unit(name) => Self::Unit(name),
            BagName::Application(name) => Self::Application(name),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct LaterName {
    name: String,
    data: Option<String>,
    after_ms: Option<u64>,
    when: Vec<WhenName>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum WhenName {
    Config(String),
    Relation { relation: RelationId, bag: BagName, key: String },
    Leader,
}

impl From<LaterName> for LaterEvent {
    fn from(later: LaterName) -> Self {
        let when = later.when.into_iter().map(|when| match when {
            WhenName::Config(option) => DueCondition::Config(option),
            WhenName::Relation { relation, bag, key } => {
                DueCondition::Relation { relation, bag: bag.into(), key }
            }
            WhenName::Leader => DueCondition::Leader,
        });
        Self { name: later.name, data: later.data, after_ms: later.after_ms, when: when.collect() }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OwnBagName {
    Unit,
    Application,
}

impl From<OwnBagName> for OwnBag {
    fn from(bag: OwnBagName) -> Self {
        match bag {
            OwnBagName::Unit => Self::Unit,
            OwnBagName::Application => Self::Application,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum PortsName {
    Tcp(u16, u16),
    Udp(u16, u16),
    Icmp,
}

impl From<PortsName> for Ports {
    fn from(ports: PortsName) -> Self {
        match ports {
            PortsName::Tcp(first, last) => Self::Tcp(first, last),
            PortsName::Udp(first, last) => Self::Udp(first, last),
            PortsName::Icmp => Self::Icmp,
        }
    }
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StatusName {
    Maintenance,
    Blocked,
    Waiting,
    Active,
}

impl From<StatusName> for CharmStatus {
    fn from(status: StatusName) -> Self {
        match status {
            StatusName::Maintenance => Self::Maintenance,
            StatusName::Blocked => Self::Blocked,
            StatusName::Waiting => Self::Waiting,
            StatusName::Active => Self::Active,
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum OwnerName {
    Application,
    Unit,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ModeName {
    Tracked,
    Peek,
    Refresh,
}

/// The metadata of a secret, as a case writes it.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
#[derive(Default)]
struct SecretOptions {
    label: Option<String>,
    description: Option<String>,
    rotate: Option<RotatePolicy>,
    expire: Option<String>,
}

impl SecretOptions {
    fn parts(self) -> (SecretMetadata, Option<String>) {
        let Self { label, description, rotate, expire } = self;
        (SecretMetadata { label, description, rotate, expire: None }, expire)
    }
}
