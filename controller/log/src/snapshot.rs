//! A snapshot: the state after an entry, in parts, for a controller that needs entries which the log does not have any
//! more.
//!
//! Its form is one byte that names it, then the parts. Each part is its length in its stored form and the length of its
//! content (four bytes each, big-endian), and the content compressed by zstd, with zstd's checksum of the content. So a
//! damaged part is refused before anything of it is used. Records may be newer than the state: the entries that follow
//! bring them again.

mod wire;

use bytes::{Buf as _, Bytes, BytesMut};
use periapt_store::Record;

use crate::{EntryError, LogHead, MAX_ENTRY_BYTES};

/// The form that is written, and the only one that is read.
const FORM: u8 = 1;

/// The bytes before a part: two lengths.
const HEADER: usize = 8;

/// A part of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnapshotPart {
    /// The first part: the entry after which the state is.
    Head(LogHead),
    /// Entities, with their keys.
    Entities(Vec<(Vec<u8>, Vec<u8>)>),
    /// Records of one sequence.
    Records {
        /// The name of the sequence.
        sequence: Vec<u8>,
        /// The records.
        records: Vec<Record>,
    },
    /// The last part.
    End {
        /// The number of all entities.
        entities: u64,
        /// The number of all records.
        records: u64,
    },
}

/// The reason why a snapshot cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// A newer program wrote it.
    #[error("the snapshot has form {0}, this program knows form {FORM}: use a newer periapt")]
    TooNew(u8),
    /// It is damaged.
    #[error("the snapshot cannot be read: {0}")]
    Malformed(String),
}

impl SnapshotPart {
    /// Returns the beginning of a snapshot, before its first part.
    pub fn beginning() -> Bytes {
        Bytes::from_static(&[FORM])
    }

    /// Returns the form of a part.
    ///
    /// # Errors
    /// [`EntryError::TooLarge`]
    pub fn encode(&self) -> Result<Bytes, EntryError> {
        wire::encode_part(self)
    }
}

/// A reader of a snapshot that arrives in pieces.
#[derive(Debug, Default)]
pub struct SnapshotReader {
    waiting: BytesMut,
    has_begun: bool,
}

impl SnapshotReader {
    /// Adds the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.waiting.extend_from_slice(piece);
    }

    /// Returns the next part, if it has arrived.
    ///
    /// # Errors
    /// [`SnapshotError`]
    pub fn next_part(&mut self) -> Result<Option<SnapshotPart>, SnapshotError> {
        if !self.has_begun {
            match self.waiting.first() {
                None => return Ok(None),
                Some(&FORM) => self.waiting.advance(1),
                Some(&form) => return Err(SnapshotError::TooNew(form)),
            }
            self.has_begun = true;
        }
        let Some(mut header) = self.waiting.get(..HEADER) else { return Ok(None) };
        let (stored, content) = (header.get_u32() as usize, header.get_u32() as usize);
        if stored > MAX_ENTRY_BYTES || content > MAX_ENTRY_BYTES {
            return Err(SnapshotError::Malformed(format!("a part has {} bytes", stored.max(content))));
        }
        if self.waiting.len() < HEADER + stored {
            return Ok(None);
        }
        self.waiting.advance(HEADER);
        let part = self.waiting.split_to(stored);
        wire::decode_part(&part, content).map(Some).map_err(SnapshotError::Malformed)
    }
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, Level, Revision, StoreId, Timestamp};
    use periapt_store::RecordPosition;

    use super::*;
    use crate::Term;

    fn parts() -> Vec<SnapshotPart> {
        let position = RecordPosition { revision: Revision(3), index: 7 };
        let record = Record { position, at: Timestamp::from_second(5).unwrap(), body: b"body".to_vec() };
        vec![
            SnapshotPart::Head(LogHead {
                log: StoreId(uuid::Uuid::from_u128(9)),
                position: Revision(12),
                term: Term(3),
                at: Timestamp::from_second(7).unwrap(),
                level: Level(2),
                digest: Digest::of(b"x"),
            }),
            SnapshotPart::Entities(vec![(b"a".to_vec(), vec![1; 10_000]), (Vec::new(), Vec::new())]),
            SnapshotPart::Entities(Vec::new()),
            SnapshotPart::Records { sequence: b"log".to_vec(), records: vec![record] },
            SnapshotPart::End { entities: 2, records: 1 },
        ]
    }

    fn written() -> Vec<u8> {
        let mut bytes = SnapshotPart::beginning().to_vec();
        for part in parts() {
            bytes.extend(part.encode().unwrap());
        }
        bytes
    }

    fn read(pieces: impl Iterator<Item = Vec<u8>>) -> Result<Vec<SnapshotPart>, SnapshotError> {
        let (mut reader, mut read) = (SnapshotReader::default(), Vec::new());
        for piece in pieces {
            reader.push(&piece);
            while let Some(part) = reader.next_part()? {
                read.push(part);
            }
        }
        Ok(read)
    }

    #[test]
    fn parts_are_read_back_however_they_arrive() {
        let bytes = written();
        assert_eq!(read([bytes.clone()].into_iter()).unwrap(), parts());
        assert_eq!(read(bytes.chunks(1).map(<[u8]>::to_vec)).unwrap(), parts());
        assert_eq!(read(bytes[..bytes.len() - 1].chunks(7).map(<[u8]>::to_vec)).unwrap().len(), 4);
    }

    #[test]
    fn damaged_parts_are_refused_and_never_panic() {
        let bytes = written();
        assert_eq!(read([vec![9]].into_iter()), Err(SnapshotError::TooNew(9)));
        let huge = [&[FORM][..], &u32::MAX.to_be_bytes(), &[0; 4]].concat();
        assert!(matches!(read([huge].into_iter()), Err(SnapshotError::Malformed(_))));
        for index in 0..bytes.len() {
            for bit in [1, 128] {
                let mut damaged = bytes.clone();
                damaged[index] ^= bit;
                // It is refused, ends early, or reads as what was written: a content may be said to be longer than it is.
                if let Ok(whole) = read([damaged].into_iter()) {
                    assert!(parts().starts_with(&whole), "bit {bit} of byte {index}: {whole:?}");
                }
            }
        }
    }
}
