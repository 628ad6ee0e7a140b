//! Where entities and records stand in a store.
//!
//! | what | key |
//! | --- | --- |
//! | an entity of a model | `model/UUID/KEY`: all entities of a model are neighbours |
//! | any other entity | `top/KEY` |
//! | a sequence of records | `MODEL-UUID/KIND/ENTITY`; log lines of a model are one sequence, without entity |
//!
//! `KEY` is the JSON form of the model's key, such as `{"unit":"mysql/0"}`: a kind that was ever stored keeps its
//! name.

use periapt_host_api::ModelUuid;
use periapt_model::{
    changes::RecordKind,
    entity::{EntityKey, ModelKey},
};

use crate::codec::CodecError;

const MODEL: &str = "model/";
const TOP: &str = "top/";

/// The key of an entity.
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

/// Reads an entity's key back.
///
/// # Errors
/// [`CodecError::Key`] for bytes that no version wrote.
pub fn parse_entity(bytes: &[u8]) -> Result<EntityKey, CodecError> {
    let unknown = || CodecError::Key(String::from_utf8_lossy(bytes).into_owned());
    let text = std::str::from_utf8(bytes).map_err(|_| unknown())?;
    if let Some(rest) = text.strip_prefix(TOP) {
        return serde_json::from_str(rest).map_err(|_| unknown());
    }
    let (model, key) = text.strip_prefix(MODEL).and_then(|rest| rest.split_once('/')).ok_or_else(unknown)?;
    let key: ModelKey = serde_json::from_str(key).map_err(|_| unknown())?;
    Ok(EntityKey::InModel(model.parse().map_err(|_| unknown())?, key))
}

/// The name of a sequence of records. A model's log lines are read together, in the order of their commits; status
/// history and journal by unit.
pub fn record_prefix(model: &ModelUuid, kind: RecordKind, entity: &str) -> Vec<u8> {
    let (kind, entity) = match kind {
        RecordKind::Log => ("log", ""),
        RecordKind::Status => ("status", entity),
        RecordKind::Journal => ("journal", entity),
    };
    format!("{model}/{kind}/{entity}").into_bytes()
}

/// What the names of all sequences of a model begin with.
pub fn records_of_model(model: &ModelUuid) -> Vec<u8> {
    format!("{model}/").into_bytes()
}
