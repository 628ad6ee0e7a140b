//! The keys of records: the sequence's name, escaped so that no name is a prefix of another sequence's keys, then the
//! revision and the index in big-endian order.

use periapt_host_api::{Revision, Timestamp};
use periapt_store::{Record, RecordPosition};

/// Escapes a name: adds 255 after each 0 byte, which keeps the order and reserves 0 0 for the end.
pub(crate) fn escaped(name: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(name.len() + 16);
    for &byte in name {
        escaped.push(byte);
        if byte == 0 {
            escaped.push(255);
        }
    }
    escaped
}

/// Returns the prefix of all keys of one sequence.
pub(crate) fn sequence(name: &[u8]) -> Vec<u8> {
    let mut key = escaped(name);
    key.extend([0, 0]);
    key
}

/// Returns the name of a sequence from the prefix of its keys.
pub(crate) fn name(sequence: &[u8]) -> Option<Vec<u8>> {
    let mut name = Vec::with_capacity(sequence.len());
    let mut rest = sequence.strip_suffix(&[0, 0])?.iter();
    while let Some(&byte) = rest.next() {
        if byte == 0 && rest.next() != Some(&255) {
            return None;
        }
        name.push(byte);
    }
    Some(name)
}

/// Returns the sequence's prefix in a record's key.
pub(crate) fn sequence_of(record: &[u8]) -> Option<&[u8]> {
    record.get(..record.len().checked_sub(12)?).filter(|sequence| name(sequence).is_some())
}

/// Returns the key of one record.
pub(crate) fn record(name: &[u8], position: RecordPosition) -> Vec<u8> {
    let mut key = sequence(name);
    key.extend(position.revision.0.to_be_bytes());
    key.extend(position.index.to_be_bytes());
    key
}

/// Returns the first key after a record's.
pub(crate) fn just_after(name: &[u8], position: RecordPosition) -> Vec<u8> {
    let mut key = record(name, position);
    key.push(0);
    key
}

/// Returns the last key before a record's. Before a sequence's first possible record, it precedes the sequence.
pub(crate) fn just_before(name: &[u8], position: RecordPosition) -> Vec<u8> {
    let at = (u128::from(position.revision.0) << 32 | u128::from(position.index)).checked_sub(1);
    match at {
        Some(at) => {
            let mut key = sequence(name);
            key.extend(at.to_be_bytes().iter().skip(4));
            key
        }
        None => sequence(name),
    }
}

/// Returns the first key after all keys that start with `prefix`; for an empty prefix, a key greater than any in use.
pub(crate) fn after_all_with(prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    while let Some(last) = key.pop() {
        if let Some(next) = last.checked_add(1) {
            key.push(next);
            return key;
        }
    }
    vec![255; 64]
}

/// Encodes a record's value: its time in microseconds, then the body.
pub(crate) fn body(at: Timestamp, body: &[u8]) -> Vec<u8> {
    let mut value = at.as_microsecond().to_be_bytes().to_vec();
    value.extend(body);
    value
}

/// Decodes one record of a sequence.
pub(crate) fn parse(sequence: &[u8], key: &[u8], value: &[u8]) -> Option<Record> {
    let (revision, index) = key.strip_prefix(sequence)?.split_at_checked(8)?;
    let (at, body) = value.split_at_checked(8)?;
    Some(Record {
        position: RecordPosition {
            revision: Revision(u64::from_be_bytes(revision.try_into().ok()?)),
            index: u32::from_be_bytes(index.try_into().ok()?),
        },
        at: Timestamp::from_microsecond(i64::from_be_bytes(at.try_into().ok()?)).ok()?,
        body: body.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sequence_lies_within_another() {
        for (a, b) in [("a", "ab"), ("a", "a\0"), ("a\0", "a\0\0"), ("", "a"), ("a", "a\u{1}")] {
            let (a, b) = (sequence(a.as_bytes()), sequence(b.as_bytes()));
            assert!(!a.starts_with(&b) && !b.starts_with(&a));
            assert!(a < b);
        }
    }

    #[test]
    fn the_key_before_a_record_is_before_it_and_after_the_one_before() {
        let at = |revision, index| RecordPosition { revision: Revision(revision), index };
        let before = just_before(b"a", at(5, 0));
        assert!(before < record(b"a", at(5, 0)));
        assert!(before > record(b"a", at(4, 7)));
        assert!(just_before(b"a", at(0, 0)) < record(b"a", at(0, 0)));
    }

    #[test]
    fn a_name_is_read_back_from_its_keys() {
        for text in ["", "a", "a\0", "\0\0", "a\0b\u{ff}"] {
            let at = RecordPosition { revision: Revision(u64::MAX), index: 0 };
            let key = record(text.as_bytes(), at);
            assert_eq!(sequence_of(&key), Some(sequence(text.as_bytes()).as_slice()));
            assert_eq!(sequence_of(&key).and_then(name).as_deref(), Some(text.as_bytes()));
        }
        for broken in [&b"short"[..], b"without an end of its name", b"a\0b\0\0 and 12 bytes"] {
            assert_eq!(sequence_of(broken), None);
        }
    }

    #[test]
    fn the_end_of_a_prefix_is_past_all_its_keys() {
        assert_eq!(after_all_with(&[1, 255, 255]), [2]);
        assert!(after_all_with(&[255]) > vec![255, 255, 255]);
    }
}
