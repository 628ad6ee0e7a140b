//! The stored forms: the encoding of keys and values as bytes.
//!
//! A value is one byte that names its form, then the form. Form 1 is JSON of the model's entities: it is
//! self-describing, and new fields with a default may be added. Any other change gives form 1 a type of its own in
//! this module, which readers convert. `tests/forms` holds values of every kind in every released form, which must
//! stay readable for ever.

mod error;

pub use error::CodecError;

use std::collections::BTreeMap;

use periapt_host_api::Revision;
use periapt_model::{
    changes::{Changes, RecordAppend, RecordBody},
    entity::{Entity, EntityKey},
};
use serde::{Serialize, de::DeserializeOwned};

use crate::{Batch, EntityChunk, MAX_COMMIT_BYTES, MAX_COMMIT_KEYS, NewRecord, Record, key};

/// The form that is written, and the newest that can be read.
pub const FORM: u8 = 1;

/// The writes of one command, in stored form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writes {
    entities: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
    records: Vec<NewRecord>,
}

impl Writes {
    /// Encodes the writes of a command.
    ///
    /// # Errors
    /// [`CodecError::Encode`]
    pub fn of(changes: &Changes) -> Result<Self, CodecError> {
        let entities = changes.puts.iter();
        let entities = entities
            .map(|(key, entity)| Ok((key::entity(key)?, entity.as_ref().map(encode).transpose()?)))
            .collect::<Result<_, CodecError>>()?;
        let records = changes.records.iter().map(record).collect::<Result<_, _>>()?;
        Ok(Self { entities, records })
    }

    /// Checks that a store accepts the writes in one commit. Entities count with their keys, records do not.
    ///
    /// # Errors
    /// [`TooLarge`] tells the excessive number.
    pub fn fit(&self) -> Result<(), TooLarge> {
        let keys = self.entities.len();
        let bytes =
            |(key, value): (&Vec<u8>, &Option<Vec<u8>>)| key.len() + value.as_ref().map_or(0, Vec::len);
        match self.entities.iter().map(bytes).sum() {
            _ if keys > MAX_COMMIT_KEYS => Err(TooLarge::Keys(keys)),
            bytes if bytes > MAX_COMMIT_BYTES => Err(TooLarge::Bytes(bytes)),
            _ => Ok(()),
        }
    }
}

/// The error for writes of one command that exceed a commit's bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooLarge {
    /// Too many entities.
    #[error("this would write {0} entities at once, at most {MAX_COMMIT_KEYS} are allowed")]
    Keys(usize),
    /// Too many bytes of keys and values.
    #[error("this would write {0} bytes at once, at most {MAX_COMMIT_BYTES} are allowed")]
    Bytes(usize),
}

/// Joins the writes of several commands, in order, into one batch. Of two writes to one entity the later counts.
pub fn batch(expected: Revision, commands: impl IntoIterator<Item = Writes>) -> Batch {
    let (mut entities, mut records) = (BTreeMap::new(), Vec::new());
    for writes in commands {
        entities.extend(writes.entities);
        records.extend(writes.records);
    }
    Batch { expected, entities: entities.into_iter().collect(), records, note: None }
}

/// Decodes the entities of a chunk.
///
/// # Errors
/// [`CodecError`] names the first entity that cannot be decoded.
pub fn entities(chunk: EntityChunk) -> Result<Vec<(EntityKey, Entity)>, CodecError> {
    chunk.into_entities().into_iter().map(|(raw, value)| entity(&raw, &value)).collect()
}

/// Decodes the entities that a batch puts (`Some`) and deletes (`None`).
///
/// # Errors
/// [`CodecError`] names the entity that cannot be decoded.
pub fn writes(batch: &Batch) -> Result<Changes, CodecError> {
    let written = batch.entities.iter().map(|(raw, value)| match value {
        Some(value) => entity(raw, value).map(|(key, entity)| (key, Some(entity))),
        None => Ok((key::parse_entity(raw)?, None)),
    });
    Ok(Changes { puts: written.collect::<Result<_, _>>()?, ..Changes::default() })
}

fn entity(raw: &[u8], value: &[u8]) -> Result<(EntityKey, Entity), CodecError> {
    let key = key::parse_entity(raw)?;
    let at = || String::from_utf8_lossy(raw).into_owned();
    let entity: Entity = decode(value, at)?;
    match entity.stands_under(&key) {
        true => Ok((key, entity)),
        false => Err(CodecError::Misplaced(at())),
    }
}

/// Decodes a record's body.
///
/// # Errors
/// [`CodecError`]
pub fn body(record: &Record) -> Result<RecordBody, CodecError> {
    decode(&record.body, || format!("the record at {}.{}", record.position.revision, record.position.index))
}

fn record(append: &RecordAppend) -> Result<NewRecord, CodecError> {
    Ok(NewRecord {
        prefix: key::record_prefix(&append.model, append.body.kind(), &append.entity),
        at: append.at,
        body: encode(&append.body)?,
    })
}

fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, CodecError> {
    let mut bytes = vec![FORM];
    serde_json::to_writer(&mut bytes, value).map_err(CodecError::Encode)?;
    Ok(bytes)
}

fn decode<T: DeserializeOwned>(bytes: &[u8], at: impl Fn() -> String) -> Result<T, CodecError> {
    match bytes.split_first() {
        Some((&FORM, json)) => {
            serde_json::from_slice(json).map_err(|source| CodecError::Value { at: at(), source })
        }
        Some((&form, _)) if form > FORM => Err(CodecError::NewerForm { at: at(), form }),
        _ => Err(CodecError::Misplaced(at())),
    }
}
