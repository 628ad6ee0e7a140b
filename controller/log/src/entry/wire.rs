//! The stored form of entries and of heads, as Protobuf messages. A field's number is never used again.

use bytes::Bytes;
use periapt_host_api::{Digest, LEVEL, Level, Revision, StoreId, Timestamp};
use periapt_store::NewRecord;
use prost::Message;
use uuid::Uuid;

use super::{Announcement, Content, Entry, EntryError, EntryId, FORM, LogHead};
use crate::{MAX_ENTRY_BYTES, Term};

/// The level of compression. Higher ones cost the writer more than they save.
pub(crate) const COMPRESSION: i32 = 1;

#[derive(Clone, PartialEq, Message)]
struct EntryMessage {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    term: u64,
    #[prost(int64, tag = "3")]
    at_ms: i64,
    #[prost(uint32, tag = "4")]
    level: u32,
    #[prost(bytes = "vec", tag = "5")]
    previous: Vec<u8>,
    /// The length of the content before its compression.
    #[prost(uint64, tag = "6")]
    length: u64,
    #[prost(bytes = "vec", tag = "7")]
    content: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct ContentMessage {
    #[prost(message, optional, tag = "1")]
    term: Option<AnnouncementMessage>,
    #[prost(message, repeated, tag = "2")]
    entities: Vec<EntityMessage>,
    #[prost(message, repeated, tag = "3")]
    records: Vec<RecordMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct AnnouncementMessage {
    #[prost(string, tag = "1")]
    member: String,
    #[prost(string, tag = "2")]
    url: String,
    #[prost(uint32, tag = "3")]
    level: u32,
    #[prost(bytes = "vec", tag = "4")]
    keys: Vec<u8>,
}

/// An entity, or its deletion.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct EntityMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) key: Vec<u8>,
    /// None deletes the entity.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
struct RecordMessage {
    #[prost(bytes = "vec", tag = "1")]
    prefix: Vec<u8>,
    #[prost(int64, tag = "2")]
    at_second: i64,
    #[prost(int32, tag = "3")]
    at_nanosecond: i32,
    #[prost(bytes = "vec", tag = "4")]
    body: Vec<u8>,
}

/// The end of a log.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeadMessage {
    #[prost(bytes = "vec", tag = "1")]
    log: Vec<u8>,
    #[prost(uint64, tag = "2")]
    position: u64,
    #[prost(uint64, tag = "3")]
    term: u64,
    #[prost(int64, tag = "4")]
    at_ms: i64,
    /// The digest at the first level.
    #[prost(bytes = "vec", tag = "5")]
    digest: Vec<u8>,
    /// 0 for the first level, which its programs do not name.
    #[prost(uint32, tag = "6")]
    level: u32,
    /// The digest above the first level. Programs of that level know no other, and would go on with what they cannot read:
    /// for them the end has no digest.
    #[prost(bytes = "vec", tag = "7")]
    later_digest: Vec<u8>,
}

pub(super) fn encode(entry: &Entry) -> Result<Bytes, EntryError> {
    let content = content_message(&entry.content).encode_to_vec();
    let length = content.len();
    if length > MAX_ENTRY_BYTES {
        return Err(EntryError::TooLarge(length));
    }
    let compressed = zstd::bulk::compress(&content, COMPRESSION)
        .map_err(|error| EntryError::Malformed(Revision(0), error.to_string()))?;
    let message = EntryMessage {
        id: entry.id.0.as_bytes().to_vec(),
        term: entry.term.0,
        at_ms: entry.at.as_millisecond(),
        level: entry.level.0,
        previous: entry.previous.as_bytes().to_vec(),
        length: length as u64,
        content: compressed,
    };
    let mut bytes = vec![FORM];
    bytes.extend(message.encode_to_vec());
    Ok(bytes.into())
}

pub(super) fn decode(position: Revision, bytes: &[u8]) -> Result<Entry, EntryError> {
    let malformed = |reason: String| EntryError::Malformed(position, reason);
    let (form, message) = bytes.split_first().ok_or_else(|| malformed("it is empty".into()))?;
    if *form > FORM {
        return Err(EntryError::TooNew { position, found: (*form).into(), known: FORM.into() });
    }
    if *form != FORM {
        return Err(malformed(format!("no version writes form {form}")));
    }
    let message = EntryMessage::decode(message).map_err(|error| malformed(error.to_string()))?;
    if message.level > LEVEL.0 {
        return Err(EntryError::TooNew { position, found: message.level, known: LEVEL.0 });
    }
    let length = usize::try_from(message.length).ok().filter(|length| *length <= MAX_ENTRY_BYTES);
    let length = length.ok_or_else(|| malformed(format!("its content has {} bytes", message.length)))?;
    let content = zstd::bulk::decompress(&message.content, length)
        .map_err(|error| malformed(format!("its content cannot be decompressed: {error}")))?;
    let content = ContentMessage::decode(content.as_slice()).map_err(|error| malformed(error.to_string()))?;
    Ok(Entry {
        id: EntryId(uuid(&message.id).ok_or_else(|| malformed("its id is no UUID".into()))?),
        term: Term(message.term),
        at: time(message.at_ms).ok_or_else(|| malformed("its time is out of range".into()))?,
        level: Level(message.level),
        previous: digest(&message.previous).ok_or_else(|| malformed("it names no entry before".into()))?,
        content: content_of(content).ok_or_else(|| malformed("a record's time is out of range".into()))?,
    })
}

pub(super) fn encode_head(head: &LogHead) -> Vec<u8> {
    head_message(head).encode_to_vec()
}

pub(super) fn decode_head(bytes: &[u8]) -> Result<LogHead, EntryError> {
    let malformed = |reason: &str| EntryError::Malformed(Revision(0), reason.to_owned());
    let message = HeadMessage::decode(bytes).map_err(|error| malformed(&error.to_string()))?;
    head_of(&message).map_err(malformed)
}

/// Returns the message of an end of the log.
pub(crate) fn head_message(head: &LogHead) -> HeadMessage {
    let digest = head.digest.as_bytes().to_vec();
    let (level, digest, later_digest) = match head.level.is_first() {
        true => (0, digest, Vec::new()),
        false => (head.level.0, Vec::new(), digest),
    };
    HeadMessage {
        log: head.log.0.as_bytes().to_vec(),
        position: head.position.0,
        term: head.term.0,
        at_ms: head.at.as_millisecond(),
        digest,
        level,
        later_digest,
    }
}

/// Reads the message of an end of the log.
pub(crate) fn head_of(message: &HeadMessage) -> Result<LogHead, &'static str> {
    let level = Level(message.level).max(Level::FIRST);
    let written = if level.is_first() { &message.digest } else { &message.later_digest };
    Ok(LogHead {
        log: StoreId(uuid(&message.log).ok_or("the log's id is no UUID")?),
        position: Revision(message.position),
        term: Term(message.term),
        at: time(message.at_ms).ok_or("the time is out of range")?,
        level,
        digest: digest(written).ok_or("the digest is none")?,
    })
}

fn content_message(content: &Content) -> ContentMessage {
    match content {
        Content::Term(Announcement { member, url, level, keys, blobs: _ }) => ContentMessage {
            term: Some(AnnouncementMessage {
                member: member.clone(),
                url: url.clone(),
                level: level.0,
                keys: keys.map(|keys| keys.as_bytes().to_vec()).unwrap_or_default(),
            }),
            ..ContentMessage::default()
        },
        Content::Batch { entities, records } => ContentMessage {
            term: None,
            entities: entities
                .iter()
                .map(|(key, value)| EntityMessage { key: key.clone(), value: value.clone() })
                .collect(),
            records: records.iter().map(record_message).collect(),
        },
    }
}

fn record_message(record: &NewRecord) -> RecordMessage {
    RecordMessage {
        prefix: record.prefix.clone(),
        at_second: record.at.as_second(),
        at_nanosecond: record.at.subsec_nanosecond(),
        body: record.body.clone(),
    }
}

fn content_of(message: ContentMessage) -> Option<Content> {
    if let Some(AnnouncementMessage { member, url, level, keys }) = message.term {
        let (level, keys) = (Level(level), digest(&keys));
        return Some(Content::Term(Announcement { member, url, level, keys, blobs: None }));
    }
    let entities = message.entities.into_iter().map(|EntityMessage { key, value }| (key, value)).collect();
    let records = message.records.into_iter().map(record_of).collect::<Option<_>>()?;
    Some(Content::Batch { entities, records })
}

fn record_of(message: RecordMessage) -> Option<NewRecord> {
    let at = Timestamp::new(message.at_second, message.at_nanosecond).ok()?;
    Some(NewRecord { prefix: message.prefix, at, body: message.body })
}

fn uuid(bytes: &[u8]) -> Option<Uuid> {
    Uuid::from_slice(bytes).ok()
}

fn digest(bytes: &[u8]) -> Option<Digest> {
    bytes.try_into().ok().map(Digest::from_bytes)
}

fn time(milliseconds: i64) -> Option<Timestamp> {
    Timestamp::from_millisecond(milliseconds).ok()
}
