//! The stored form of a snapshot's parts, as Protobuf messages. A field's number is never used again.

use std::io;

use bytes::Bytes;
use periapt_host_api::{Revision, Timestamp};
use periapt_store::{Record, RecordPosition};
use prost::Message;
use zstd::bulk::Compressor;

use super::SnapshotPart;
use crate::{
    EntryError, MAX_ENTRY_BYTES,
    entry::wire::{COMPRESSION, EntityMessage, HeadMessage, head_message, head_of},
};

#[derive(Clone, PartialEq, Message)]
struct PartMessage {
    #[prost(message, optional, tag = "1")]
    head: Option<HeadMessage>,
    #[prost(message, repeated, tag = "2")]
    entities: Vec<EntityMessage>,
    #[prost(message, optional, tag = "3")]
    records: Option<SequenceMessage>,
    #[prost(message, optional, tag = "4")]
    end: Option<EndMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct SequenceMessage {
    #[prost(bytes = "vec", tag = "1")]
    sequence: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    records: Vec<StoredRecordMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredRecordMessage {
    #[prost(uint64, tag = "1")]
    revision: u64,
    #[prost(uint32, tag = "2")]
    index: u32,
    #[prost(int64, tag = "3")]
    at_second: i64,
    #[prost(int32, tag = "4")]
    at_nanosecond: i32,
    #[prost(bytes = "vec", tag = "5")]
    body: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct EndMessage {
    #[prost(uint64, tag = "1")]
    entities: u64,
    #[prost(uint64, tag = "2")]
    records: u64,
}

/// Returns the form of a part of a snapshot.
pub(crate) fn encode_part(part: &SnapshotPart) -> Result<Bytes, EntryError> {
    let content = part_message(part).encode_to_vec();
    let too_large = || EntryError::TooLarge(content.len());
    if content.len() > MAX_ENTRY_BYTES {
        return Err(too_large());
    }
    let compressed =
        compressed(&content).map_err(|error| EntryError::Malformed(Revision(0), error.to_string()))?;
    let mut bytes = Vec::with_capacity(8 + compressed.len());
    for length in [compressed.len(), content.len()] {
        bytes.extend(u32::try_from(length).map_err(|_| too_large())?.to_be_bytes());
    }
    bytes.extend(compressed);
    Ok(bytes.into())
}

/// Compresses content with a checksum, which readers of all releases compare.
fn compressed(content: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = Compressor::new(COMPRESSION)?;
    compressor.include_checksum(true)?;
    compressor.compress(content)
}

/// Reads a part of a snapshot, whose content has this length.
pub(crate) fn decode_part(stored: &[u8], length: usize) -> Result<SnapshotPart, String> {
    let content = zstd::bulk::decompress(stored, length).map_err(|error| error.to_string())?;
    let message = PartMessage::decode(content.as_slice()).map_err(|error| error.to_string())?;
    let PartMessage { head, entities, records, end } = message;
    if let Some(head) = head {
        return Ok(SnapshotPart::Head(head_of(&head)?));
    }
    if let Some(SequenceMessage { sequence, records }) = records {
        let records = records.into_iter().map(stored_record).collect::<Option<_>>();
        let records = records.ok_or("a record's time is out of range")?;
        return Ok(SnapshotPart::Records { sequence, records });
    }
    if let Some(EndMessage { entities, records }) = end {
        return Ok(SnapshotPart::End { entities, records });
    }
    let entities = entities.into_iter().map(|EntityMessage { key, value }| Some((key, value?))).collect();
    Option::map(entities, SnapshotPart::Entities).ok_or_else(|| "an entity has no value".into())
}

fn part_message(part: &SnapshotPart) -> PartMessage {
    let none = PartMessage::default();
    match part {
        SnapshotPart::Head(head) => PartMessage { head: Some(head_message(head)), ..none },
        SnapshotPart::Entities(entities) => {
            let entity = |(key, value): &(Vec<u8>, Vec<u8>)| EntityMessage {
                key: key.clone(),
                value: Some(value.clone()),
            };
            PartMessage { entities: entities.iter().map(entity).collect(), ..none }
        }
        SnapshotPart::Records { sequence, records } => {
            let record = |record: &Record| StoredRecordMessage {
                revision: record.position.revision.0,
                index: record.position.index,
                at_second: record.at.as_second(),
                at_nanosecond: record.at.subsec_nanosecond(),
                body: record.body.clone(),
            };
            let records = records.iter().map(record).collect();
            PartMessage { records: Some(SequenceMessage { sequence: sequence.clone(), records }), ..none }
        }
        SnapshotPart::End { entities, records } => {
            PartMessage { end: Some(EndMessage { entities: *entities, records: *records }), ..none }
        }
    }
}

fn stored_record(message: StoredRecordMessage) -> Option<Record> {
    let StoredRecordMessage { revision, index, at_second, at_nanosecond, body } = message;
    let at = Timestamp::new(at_second, at_nanosecond).ok()?;
    Some(Record { position: RecordPosition { revision: Revision(revision), index }, at, body })
}
