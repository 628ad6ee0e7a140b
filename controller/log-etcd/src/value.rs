//! The values of a log's keys, which are kept for as long as the log.

use bytes::Bytes;
use periapt_host_api::{Digest, Level, StoreId};
use periapt_log::{Announcement, LogError, LogLeader, MAX_ENTRY_BYTES, Term};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The most bytes of an entry under one key. etcd refuses requests above 1.5 MiB.
pub(crate) const PART: usize = 1 << 20;

/// The most parts of one entry. The form of an entry adds little to its content.
const MAX_PARTS: usize = MAX_ENTRY_BYTES / PART + 2;

/// The first words of the value under `id`.
const LOG: &str = "periapt-log";

/// The form of the log's keys and values that this program knows.
const FORM: &str = "1";

const INLINE: u8 = 0;
const PARTS: u8 = 1;

/// The value under an entry's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stored {
    /// The entry.
    Inline(Bytes),
    /// The entry's length and digest; its bytes are under keys of their own.
    Parts {
        /// The length of the entry.
        length: usize,
        /// The SHA-256 of the entry.
        digest: [u8; 32],
    },
}

impl Stored {
    /// Returns how an entry is stored, or the reason why it is too large.
    pub(crate) fn of(entry: &Bytes) -> Result<Self, LogError> {
        if entry.len() <= PART {
            return Ok(Self::Inline(entry.clone()));
        }
        if entry.len() > PART * MAX_PARTS {
            return Err(LogError::Refused(format!("an entry of {} bytes is too large", entry.len())));
        }
        Ok(Self::Parts { length: entry.len(), digest: *Digest::of(entry).as_bytes() })
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Inline(entry) => [&[INLINE], entry.as_ref()].concat(),
            Self::Parts { length, digest } => {
                [&[PARTS], (*length as u64).to_be_bytes().as_slice(), digest.as_slice()].concat()
            }
        }
    }

    /// Reads the value of an entry's key. `position` is for errors.
    pub(crate) fn decode(position: u64, value: Vec<u8>) -> Result<Self, LogError> {
        let damaged = || LogError::Damaged(format!("the value at position {position} cannot be read"));
        match value.first() {
            Some(&INLINE) => Ok(Self::Inline(Bytes::from(value).slice(1..))),
            Some(&PARTS) => {
                let (length, digest) =
                    value.get(1..).and_then(|rest| rest.split_first_chunk::<8>()).ok_or_else(damaged)?;
                let length = usize::try_from(u64::from_be_bytes(*length)).map_err(|_| damaged())?;
                let digest = digest.try_into().map_err(|_| damaged())?;
                if length > PART * MAX_PARTS {
                    return Err(damaged());
                }
                Ok(Self::Parts { length, digest })
            }
            Some(_) | None => Err(damaged()),
        }
    }
}

/// Returns the value under `id`.
pub(crate) fn encode_id(id: StoreId) -> String {
    format!("{LOG} {FORM} {}", id.0)
}

/// Reads the value under `id`.
pub(crate) fn decode_id(value: &[u8]) -> Result<StoreId, String> {
    let text = std::str::from_utf8(value).unwrap_or_default();
    let mut words = text.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(LOG), Some(FORM), Some(id), None) => {
            Uuid::parse_str(id).map(StoreId).map_err(|_| "its identity cannot be read".to_owned())
        }
        (Some(LOG), Some(form), ..) => {
            Err(format!("its form is {form:?}, this program knows {FORM}: use a newer periapt"))
        }
        _ => Err("another program has written it".to_owned()),
    }
}

/// Reads a number: a term or a position.
pub(crate) fn decode_number(name: &str, value: &[u8]) -> Result<u64, LogError> {
    let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
    number.ok_or_else(|| LogError::Damaged(format!("the value of {name} is no number")))
}

/// The stored form of [`LogLeader`].
#[derive(Serialize, Deserialize)]
struct LeaderForm {
    term: u64,
    member: String,
    url: String,
    level: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    keys: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    blobs: Option<String>,
}

/// Returns the value under `leader`.
pub(crate) fn encode_leader(leader: &LogLeader) -> Result<Vec<u8>, LogError> {
    let Announcement { member, url, level, keys, blobs } = leader.announcement.clone();
    let form = LeaderForm { term: leader.term.0, member, url, level: level.0, keys, blobs };
    serde_json::to_vec(&form).map_err(|error| LogError::Refused(error.to_string()))
}

/// Reads the value under `leader`.
pub(crate) fn decode_leader(value: &[u8]) -> Result<LogLeader, LogError> {
    let form: LeaderForm = serde_json::from_slice(value)
        .map_err(|error| LogError::Damaged(format!("the leader cannot be read: {error}")))?;
    let LeaderForm { term, member, url, level, keys, blobs } = form;
    let announcement = Announcement { member, url, level: Level(level), keys, blobs };
    Ok(LogLeader { term: Term(term), announcement })
}

/// Returns the name of an entry's parts.
pub(crate) fn hex(digest: &[u8; 32]) -> String {
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_read_back() {
        for entry in [vec![], vec![1], vec![7; PART], vec![7; PART + 1]] {
            let stored = Stored::of(&entry.into()).unwrap();
            assert_eq!(Stored::decode(1, stored.encode()), Ok(stored));
        }
        let leader = LogLeader {
            term: Term(7),
            announcement: Announcement {
                member: "a".into(),
                url: "https://a".into(),
                level: Level(2),
                keys: None,
                blobs: Some("s3://blobs/p".into()),
            },
        };
        assert_eq!(decode_leader(&encode_leader(&leader).unwrap()), Ok(leader));
        let id = StoreId(Uuid::from_u128(7));
        assert_eq!(decode_id(encode_id(id).as_bytes()), Ok(id));
    }

    /// The forms that logs have already: a change of one makes them unreadable.
    #[test]
    fn what_is_stored_has_one_form() {
        let id = "periapt-log 1 00000000-0000-0000-0000-000000000007";
        assert_eq!(encode_id(StoreId(Uuid::from_u128(7))), id);
        let leader = br#"{"term":7,"member":"a","url":"https://a","level":2}"#;
        assert_eq!(encode_leader(&decode_leader(leader).unwrap()).unwrap(), leader);
        assert_eq!(Stored::of(&Bytes::from_static(b"ab")).unwrap().encode(), [0, b'a', b'b']);
        let large = Bytes::from(vec![0; PART + 1]);
        let value = Stored::of(&large).unwrap().encode();
        assert_eq!(value[..9], [1, 0, 0, 0, 0, 0, 0x10, 0, 1]);
        assert_eq!(value[9..], *Digest::of(&large).as_bytes());
    }

    #[test]
    fn hostile_values_are_refused() {
        for value in [vec![], vec![2], vec![1], vec![1; 40], vec![1; 42], vec![255; 41]] {
            assert!(matches!(Stored::decode(1, value), Err(LogError::Damaged(_))));
        }
        assert!(decode_id(b"periapt-log 2 x y z").unwrap_err().contains("newer"));
        assert!(decode_id(b"\xff").unwrap_err().contains("another program"));
        assert!(decode_leader(b"{}").is_err());
        assert!(decode_number("term", b"-1").is_err());
    }
}
