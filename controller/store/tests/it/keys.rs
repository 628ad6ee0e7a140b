//! Keys: each survives encoding and decoding, and the keys of a model are adjacent.

use periapt_host_api::{
    ActionOperationId, AgentName, ApplicationName, Digest, MachineId, ModelUuid, RelationId, RequestId,
    StorageId, TaskId, UnitName, UserName,
    relation::{BagKey, BagOwner},
    secret::{SecretId, SecretRevision},
    state::StateKey,
};
use periapt_model::{
    RecordKind,
    entity::{AnswerKey, EntityKey, ModelKey, SequenceKey, WorkId},
};
use periapt_store::key;
use proptest::{prelude::*, strategy::Union};
use uuid::Uuid;

/// A strategy with one arm for each pattern of a `match`: a variant without an arm does not compile.
macro_rules! any_variant {
    ($type:ty { $($pattern:pat => $strategy:expr),+ $(,)? }) => {{
        let _every = |value: &$type| match value { $($pattern => ()),+ };
        Union::new([$(Strategy::boxed($strategy)),+])
    }};
}

fn model() -> impl Strategy<Value = ModelUuid> {
    any::<u128>().prop_map(|bits| ModelUuid(Uuid::from_u128(bits)))
}

fn digest() -> impl Strategy<Value = Digest> {
    any::<[u8; 32]>().prop_map(Digest::from_bytes)
}

fn agent() -> impl Strategy<Value = AgentName> {
    "[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}".prop_map(|text| text.parse().unwrap())
}

fn user() -> impl Strategy<Value = UserName> {
    "[a-zA-Z0-9][a-zA-Z0-9._-]{0,127}".prop_map(|text| text.parse().unwrap())
}

fn application() -> impl Strategy<Value = ApplicationName> {
    "[a-z][a-z0-9]{0,20}(-[a-z0-9]{0,5}[a-z]){0,3}".prop_map(|text| text.parse().unwrap())
}

fn unit() -> impl Strategy<Value = UnitName> {
    (application(), any::<u32>()).prop_map(|(application, number)| UnitName::new(application, number))
}

fn storage() -> impl Strategy<Value = StorageId> {
    ("[a-z][a-z0-9]{0,20}(-[a-z0-9]{0,5}[a-z]){0,3}", any::<u32>())
        .prop_map(|(name, number)| StorageId::new(name.parse().unwrap(), number))
}

fn relation() -> impl Strategy<Value = RelationId> {
    any::<u32>().prop_map(RelationId)
}

fn secret() -> impl Strategy<Value = SecretId> {
    any::<[u8; 12]>().prop_map(SecretId::from_bytes)
}

fn sequence() -> impl Strategy<Value = SequenceKey> {
    any_variant!(SequenceKey {
        SequenceKey::Machine => Just(SequenceKey::Machine),
        SequenceKey::Relation => Just(SequenceKey::Relation),
        SequenceKey::Task => Just(SequenceKey::Task),
        SequenceKey::Storage => Just(SequenceKey::Storage),
        SequenceKey::Work => Just(SequenceKey::Work),
        SequenceKey::Unit(_) => application().prop_map(SequenceKey::Unit),
        SequenceKey::CharmRevision(_) => any::<String>().prop_map(SequenceKey::CharmRevision),
    })
}

fn owner() -> impl Strategy<Value = BagOwner> {
    any_variant!(BagOwner {
        BagOwner::Unit(_) => unit().prop_map(BagOwner::Unit),
        BagOwner::Application(_) => application().prop_map(BagOwner::Application),
    })
}

fn bag() -> impl Strategy<Value = BagKey> {
    (relation(), owner()).prop_map(|(relation, owner)| BagKey { relation, owner })
}

fn model_key() -> impl Strategy<Value = ModelKey> {
    any_variant!(ModelKey {
        ModelKey::Model => Just(ModelKey::Model),
        ModelKey::Charm(_) => digest().prop_map(ModelKey::Charm),
        ModelKey::Sequence(_) => sequence().prop_map(ModelKey::Sequence),
        ModelKey::Runner(_) => agent().prop_map(ModelKey::Runner),
        ModelKey::Application(_) => application().prop_map(ModelKey::Application),
        ModelKey::Offer(_) => application().prop_map(ModelKey::Offer),
        ModelKey::RemoteApplication(_) => application().prop_map(ModelKey::RemoteApplication),
        ModelKey::Machine(_) => any::<u32>().prop_map(|id| ModelKey::Machine(MachineId(id))),
        ModelKey::Unit(_) => unit().prop_map(ModelKey::Unit),
        ModelKey::Relation(_) => relation().prop_map(ModelKey::Relation),
        ModelKey::Member(..) => (relation(), unit()).prop_map(|(id, unit)| ModelKey::Member(id, unit)),
        ModelKey::Bag(_) => bag().prop_map(ModelKey::Bag),
        ModelKey::Storage(_) => storage().prop_map(ModelKey::Storage),
        ModelKey::State(_) => (unit(), any::<String>())
            .prop_map(|(unit, key)| ModelKey::State(StateKey { unit, key })),
        ModelKey::Events(_) => unit().prop_map(ModelKey::Events),
        ModelKey::ActionOperation(_) =>
            any::<u64>().prop_map(|id| ModelKey::ActionOperation(ActionOperationId(id))),
        ModelKey::Task(_) => any::<u64>().prop_map(|id| ModelKey::Task(TaskId(id))),
        ModelKey::Secret(_) => secret().prop_map(ModelKey::Secret),
        ModelKey::SecretContent(..) => (secret(), any::<u32>())
            .prop_map(|(id, revision)| ModelKey::SecretContent(id, SecretRevision(revision))),
        ModelKey::SecretExpiry(..) => (secret(), any::<u32>())
            .prop_map(|(id, revision)| ModelKey::SecretExpiry(id, SecretRevision(revision))),
        ModelKey::SecretConsumer(..) => (secret(), unit())
            .prop_map(|(id, unit)| ModelKey::SecretConsumer(id, unit)),
        ModelKey::Grant(_) => user().prop_map(ModelKey::Grant),
        ModelKey::Workloads(_) => unit().prop_map(ModelKey::Workloads),
        ModelKey::Work(_) => any::<u64>().prop_map(|id| ModelKey::Work(WorkId(id))),
    })
}

fn entity_key() -> impl Strategy<Value = EntityKey> {
    let top = any_variant!(EntityKey {
        EntityKey::Controller => Just(EntityKey::Controller),
        EntityKey::Agent(_) => agent().prop_map(EntityKey::Agent),
        EntityKey::Enrolment(_) => agent().prop_map(EntityKey::Enrolment),
        EntityKey::Pool(_) => agent().prop_map(EntityKey::Pool),
        EntityKey::Charm(_) => digest().prop_map(EntityKey::Charm),
        EntityKey::ResourceContent(_) => digest().prop_map(EntityKey::ResourceContent),
        EntityKey::User(_) => user().prop_map(EntityKey::User),
        EntityKey::AuditHead(_) => any::<u8>().prop_map(EntityKey::AuditHead),
        EntityKey::Session(_) => digest().prop_map(EntityKey::Session),
        EntityKey::Answer(_) => (user(), any::<u128>(), any::<u32>()).prop_map(|(user, request, index)| {
            EntityKey::Answer(AnswerKey { user, request: RequestId(Uuid::from_u128(request)), index })
        }),
        EntityKey::InModel(..) => in_model(),
    });
    // Most kinds of keys belong to models.
    prop_oneof![1 => top, 3 => in_model()]
}

fn in_model() -> impl Strategy<Value = EntityKey> {
    (model(), model_key()).prop_map(|(model, key)| EntityKey::InModel(model, key))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_key_is_read_back_as_it_was_written(key in entity_key()) {
        let bytes = key::entity(&key).unwrap();
        prop_assert_eq!(key::parse_entity(&bytes).unwrap(), key);
    }

    #[test]
    fn keys_of_a_model_are_neighbours(model in model(), inside in model_key(), other in entity_key()) {
        let bytes = key::entity(&EntityKey::InModel(model, inside)).unwrap();
        let neighbours = format!("model/{model}/").into_bytes();
        prop_assert!(bytes.starts_with(&neighbours));
        let same_model = matches!(&other, EntityKey::InModel(of, _) if *of == model);
        prop_assert_eq!(key::entity(&other).unwrap().starts_with(&neighbours), same_model);
    }

    /// A decoded key encodes to the same bytes: no entity has two keys.
    #[test]
    fn a_spoiled_key_is_refused_or_is_another_key(key in entity_key(), at: prop::sample::Index, byte: u8) {
        let mut bytes = key::entity(&key).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(read) = key::parse_entity(&bytes) {
            prop_assert_eq!(key::entity(&read).unwrap(), bytes);
        }
    }

    /// The prefix of a model's sequences matches all of them and none of another model.
    #[test]
    fn a_models_sequences_begin_with_its_name(model in model(), other in model(), unit in unit()) {
        prop_assume!(model != other);
        for kind in [RecordKind::Log, RecordKind::Status, RecordKind::Journal, RecordKind::Task] {
            let prefix = key::record_prefix(&model, kind, &unit.to_string());
            prop_assert!(prefix.starts_with(&key::records_of_model(&model)));
            prop_assert!(!prefix.starts_with(&key::records_of_model(&other)));
        }
    }
}

#[test]
fn a_models_log_is_one_sequence_and_all_else_is_one_a_unit() {
    let name = |kind, entity| key::record_prefix(&ModelUuid(Uuid::nil()), kind, entity);
    assert_eq!(name(RecordKind::Log, "mysql/0"), name(RecordKind::Log, "mysql/1"));
    for kind in [RecordKind::Status, RecordKind::Journal, RecordKind::Task] {
        assert_ne!(name(kind, "mysql/0"), name(kind, "mysql/1"));
    }
    assert_ne!(name(RecordKind::Status, "mysql/0"), name(RecordKind::Journal, "mysql/0"));
}
