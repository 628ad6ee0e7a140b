//! The keys of entities and records in a store.
//!
//! | what | key |
//! | --- | --- |
//! | an entity of a model | `model/UUID/KEY`, so that the entities of a model are adjacent |
//! | any other entity | `top/KEY` |
//! | a sequence of records | `MODEL-UUID/KIND/ENTITY`; the log lines of a model form one sequence, without entity |
//! | the audit log | `audit` |
//!
//! `KEY` is the JSON form of the model's key, such as `{"unit":"mysql/0"}`. A kind that was ever stored keeps its
//! name.

use periapt_host_api::{ModelUuid, TaskId};
use periapt_model::{
    changes::RecordKind,
    entity::{EntityKey, ModelKey},
};

use crate::codec::CodecError;

const MODEL: &str = "model/";
const TOP: &str = "top/";

/// The name of the one sequence of the audit log.
pub const AUDIT: &[u8] = b"audit";

/// Encodes the key of an entity.
///
/// # Errors
/// [`CodecError::Encode`]
pub fn entity(key: &EntityKey) -> Result<Vec<u8>, CodecError> {
    let text = match key {
        EntityKey::InModel(model, key) => {
            format!("{MODEL}{model}/{}", serde_json::to_string(key).map_err(CodecError::Encode)?)
        }
        key => format!("{TOP}{}", serde_json::to_string(key).map_err(CodecError::Encode)?),
    };
    Ok(text.into_bytes())
}

/// Decodes the key of an entity.
///
/// # Errors
/// [`CodecError::Key`] for bytes that no version writes, and for other spellings of a key: each entity has one key
/// only.
pub fn parse_entity(bytes: &[u8]) -> Result<EntityKey, CodecError> {
    let key = std::str::from_utf8(bytes).ok().and_then(parse);
    match key {
        Some(key) if entity(&key)? == bytes => Ok(key),
        _ => Err(CodecError::Key(String::from_utf8_lossy(bytes).into_owned())),
    }
}

/// Returns the name of a sequence of records. The log lines of a model form one sequence, in the order of their
/// commits; status history and journal have one for each unit.
pub fn record_prefix(model: &ModelUuid, kind: RecordKind, entity: &str) -> Vec<u8> {
    let (kind, entity) = match kind {
        RecordKind::Log => ("log", ""),
        RecordKind::Status => ("status", entity),
        RecordKind::Journal => ("journal", entity),
        RecordKind::Task => ("task", entity),
        RecordKind::Audit => return AUDIT.to_vec(),
    };
    format!("{model}/{kind}/{entity}").into_bytes()
}

/// Returns the model and kind of the records that a sequence holds; none for a name that no version writes.
pub fn parse_records(name: &[u8]) -> Option<(ModelUuid, RecordKind)> {
    let mut parts = std::str::from_utf8(name).ok()?.splitn(3, '/');
    let (model, kind, _entity) = (parts.next()?, parts.next()?, parts.next()?);
    let kind = match kind {
        "log" => RecordKind::Log,
        "status" => RecordKind::Status,
        "journal" => RecordKind::Journal,
        "task" => RecordKind::Task,
        _ => return None,
    };
    Some((model.parse().ok()?, kind))
}

/// Returns the task whose records a sequence holds; none for other sequences.
pub fn parse_task_records(name: &[u8]) -> Option<(ModelUuid, TaskId)> {
    let (model, kind) = parse_records(name)?;
    let task = std::str::from_utf8(name).ok()?.rsplit('/').next()?.parse().ok()?;
    (kind == RecordKind::Task).then_some((model, task))
}

/// Returns the prefix of the names of all sequences of a model.
pub fn records_of_model(model: &ModelUuid) -> Vec<u8> {
    format!("{model}/").into_bytes()
}

fn parse(text: &str) -> Option<EntityKey> {
    if let Some(key) = text.strip_prefix(TOP) {
        return serde_json::from_str(key).ok();
    }
    let (model, key) = text.strip_prefix(MODEL)?.split_once('/')?;
    let key: ModelKey = serde_json::from_str(key).ok()?;
    Some(EntityKey::InModel(model.parse().ok()?, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_sequence_tells_whose_it_is() {
        let model = ModelUuid(uuid::Uuid::from_u128(7));
        for kind in [RecordKind::Log, RecordKind::Status, RecordKind::Journal, RecordKind::Task] {
            assert_eq!(parse_records(&record_prefix(&model, kind, "mysql/0")), Some((model, kind)));
        }
        for unknown in ["", "x/log/", "00000000-0000-0000-0000-000000000007/audit/x"] {
            assert_eq!(parse_records(unknown.as_bytes()), None, "{unknown}");
        }
    }
}
