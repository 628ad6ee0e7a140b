//! A value of every stored kind, with every field filled and every variant of its parts.
//!
//! All values are complete, without `..Default::default()`: a new field, variant or kind does not compile until its
//! author has decided on its stored form. [`crate::forms`] says how an entity may change.

mod answer;
mod application;
mod charm;
mod infrastructure;
mod offer;
mod record;
mod relation;
mod resource;
mod secret;
mod storage;
mod task;
mod unit;
mod user;
mod work;

use std::str::FromStr;

use periapt_host_api::{Digest, ModelUuid, Timestamp};
use periapt_model::{
    changes::{Changes, RecordAppend, RecordBody},
    entity::{self, Entity, EntityKey, ModelKey},
};
use uuid::Uuid;

/// Values with names, which tell the variant or special property that they show.
type Named<T> = Vec<(&'static str, T)>;

/// One named value for each pattern. The patterns form a `match`, so that a variant without a value does not compile,
/// and the macro checks each value against its pattern.
macro_rules! every {
    ($type:ty { $($name:literal: $pattern:pat => $value:expr),+ $(,)? }) => {{
        let name = |value: &$type| match value { $($pattern => $name),+ };
        let values: crate::samples::Named<$type> = vec![$(($name, $value)),+];
        for (stands_for, value) in &values {
            assert_eq!(*stands_for, name(value), "a value must be of the variant that it stands for");
        }
        values
    }};
}
use every;

/// The model of all samples.
pub(crate) const MODEL: ModelUuid = ModelUuid(Uuid::from_u128(0x0190_a7c4_5b1e_7d30_8c52_4f6e_9a01_b2c3));

/// One stored value.
#[derive(Debug, Clone)]
pub(crate) struct Sample {
    /// The name of the fixture: a kind of entity, or `record-` and a kind of record.
    pub(crate) kind: &'static str,
    /// The sample's name in the fixture.
    pub(crate) name: &'static str,
    /// The value.
    pub(crate) content: Content,
}

/// A stored entity or record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    Entity(EntityKey, Entity),
    Record(RecordAppend),
}

impl Sample {
    /// Returns the changes of a command that writes the sample.
    pub(crate) fn changes(&self) -> Changes {
        let mut changes = Changes::default();
        match &self.content {
            Content::Entity(key, entity) => {
                changes.puts.insert(key.clone(), Some(entity.clone()));
            }
            Content::Record(append) => changes.records.push(append.clone()),
        }
        changes
    }
}

macro_rules! entities {
    ($($kind:ident($name:literal) => $values:path),+ $(,)?) => {
        /// Returns samples of every kind of entity; a kind without samples does not compile.
        pub(crate) fn entities() -> Vec<Sample> {
            let kind = |entity: &Entity| match entity { $(Entity::$kind(_) => $name),+ };
            let mut samples = Vec::new();
            $(
                let values: Named<entity::$kind> = $values();
                assert!(!values.is_empty(), "{} has samples", $name);
                for (name, value) in values {
                    let entity = Entity::from(value);
                    let content = Content::Entity(key_of(&entity), entity.clone());
                    samples.push(Sample { kind: kind(&entity), name, content });
                }
            )+
            samples
        }
    };
}

entities! {
    Controller("controller") => infrastructure::controllers,
    Agent("agent") => infrastructure::agents,
    Enrolment("enrolment") => infrastructure::enrolments,
    AgentPool("agent-pool") => infrastructure::pools,
    Charm("charm") => charm::charms,
    ResourceContent("resource-content") => resource::contents,
    Model("model") => infrastructure::models,
    ModelCharm("model-charm") => charm::model_charms,
    Sequence("sequence") => infrastructure::sequences,
    Runner("runner") => infrastructure::runners,
    Application("application") => application::applications,
    Machine("machine") => infrastructure::machines,
    Unit("unit") => unit::units,
    Relation("relation") => relation::relations,
    Member("member") => relation::members,
    Bag("bag") => relation::bags,
    Offer("offer") => offer::offers,
    RemoteApplication("remote-application") => offer::remote_applications,
    Storage("storage") => storage::storages,
    StateEntry("state-entry") => unit::state_entries,
    PendingEvents("pending-events") => unit::pending_events,
    ActionOperation("action-operation") => task::operations,
    Task("task") => task::tasks,
    Secret("secret") => secret::secrets,
    SecretContent("secret-content") => secret::contents,
    SecretExpiry("secret-expiry") => secret::expiries,
    SecretConsumer("secret-consumer") => secret::consumers,
    WorkItem("work-item") => work::items,
    User("user") => user::users,
    Session("session") => user::sessions,
    AuditHead("audit-head") => user::audit_heads,
    KeptAnswer("kept-answer") => answer::answers,
    ModelGrant("model-grant") => user::model_grants,
    ReportedWorkloads("reported-workloads") => unit::workloads,
}

/// Returns samples of every kind of record; a kind without samples does not compile.
pub(crate) fn records() -> Vec<Sample> {
    let kind = |body: &RecordBody| match body {
        RecordBody::Log(_) => "record-log",
        RecordBody::Status(_) => "record-status",
        RecordBody::Journal(_) => "record-journal",
        RecordBody::TaskMessage(_) | RecordBody::TaskResults(_) => "record-task",
        RecordBody::Audit(_) => "record-audit",
    };
    let append = |(name, body): (&'static str, RecordBody)| {
        let append = RecordAppend { model: MODEL, entity: "wordpress/0".into(), at: time(7), body };
        Sample { kind: kind(&append.body), name, content: Content::Record(append) }
    };
    let records = record::logs().into_iter().chain(record::statuses()).chain(record::hooks());
    records.chain(task::records()).chain(user::audited()).map(append).collect()
}

/// Returns all samples.
pub(crate) fn all() -> Vec<Sample> {
    let mut samples = entities();
    samples.extend(records());
    samples
}

fn key_of(entity: &Entity) -> EntityKey {
    match entity {
        Entity::Controller(_) => EntityKey::Controller,
        Entity::Agent(agent) => EntityKey::Agent(agent.name.clone()),
        Entity::Enrolment(enrolment) => EntityKey::Enrolment(enrolment.agent.clone()),
        Entity::AgentPool(pool) => EntityKey::Pool(pool.name.clone()),
        Entity::Charm(charm) => EntityKey::Charm(charm.digest),
        Entity::ResourceContent(content) => EntityKey::ResourceContent(content.digest),
        Entity::User(user) => EntityKey::User(user.name.clone()),
        Entity::Session(session) => EntityKey::Session(session.token),
        Entity::AuditHead(head) => EntityKey::AuditHead(head.log),
        Entity::KeptAnswer(kept) => EntityKey::Answer(kept.key.clone()),
        entity => EntityKey::InModel(MODEL, entity.model_key().unwrap()),
    }
}

/// Returns the key of a unit of the samples' model.
pub(crate) fn unit_key(name: &str) -> EntityKey {
    EntityKey::InModel(MODEL, ModelKey::Unit(parse(name)))
}

/// Returns a time some seconds into the samples' period, with a fraction of a second that must survive.
fn time(seconds: i64) -> Timestamp {
    Timestamp::new(1_767_225_600 + seconds, 123_456_789).unwrap()
}

fn digest(of: &str) -> Digest {
    Digest::of(of.as_bytes())
}

fn parse<T: FromStr<Err: std::fmt::Debug>>(text: &str) -> T {
    text.parse().unwrap()
}

/// Returns a text that encodings easily corrupt: quotes, a backslash, line breaks, and more than ASCII.
fn awkward_text() -> String {
    "it's \"down\"\\ for\nmaintenance\t\u{2013} \u{fc}ber \u{1f40c}\u{0}".into()
}
