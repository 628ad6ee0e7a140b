//! The content of a store as it is read: the head, and the entities in bounded chunks.

use futures_util::{TryStreamExt as _, stream::BoxStream};
use periapt_host_api::Revision;

use crate::{LoadedState, StoreError};

/// The most bytes of keys and values in a chunk: as many as one command may write. An entity that is larger makes a
/// chunk of its own.
pub const MAX_CHUNK_BYTES: usize = 1 << 20;

/// The most entities in a chunk. It bounds what small entities cost beside their bytes: two allocations each.
pub const MAX_CHUNK_ENTITIES: usize = 1_000;

/// The key and the value of an entity, in stored form.
pub type StoredEntity = (Vec<u8>, Vec<u8>);

/// Entities of a store that are adjacent by key, in order: at most [`MAX_CHUNK_ENTITIES`] with [`MAX_CHUNK_BYTES`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EntityChunk {
    entities: Vec<StoredEntity>,
    bytes: usize,
}

impl EntityChunk {
    /// Returns true if an entity can be added. An empty chunk takes any.
    pub fn has_room(&self, key: &[u8], value: &[u8]) -> bool {
        let bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
        self.entities.is_empty() || (self.entities.len() < MAX_CHUNK_ENTITIES && bytes <= MAX_CHUNK_BYTES)
    }

    /// Adds an entity. The caller has looked for [room](Self::has_room).
    pub fn push(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes = self.bytes.saturating_add(key.len()).saturating_add(value.len());
        self.entities.push((key, value));
    }

    /// Returns the entities, in the order of their keys.
    pub fn entities(&self) -> &[StoredEntity] {
        &self.entities
    }

    /// Returns the bytes of all keys and values.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the entities, in the order of their keys.
    pub fn into_entities(self) -> Vec<StoredEntity> {
        self.entities
    }
}

/// The content of a store at `revision`, records aside, whose entities are read chunk by chunk.
///
/// All of it is of one moment, whatever is written while the chunks are read. The store keeps the replaced values until
/// the last chunk was read, or until this value is dropped.
pub struct StoredState {
    /// The head.
    pub revision: Revision,
    /// The newest [`Batch::note`](crate::Batch::note).
    pub note: Option<Vec<u8>>,
    /// The chunks, sorted by key; none is empty. The stream ends with its first error, and only a stream that ends
    /// without one was whole.
    pub chunks: BoxStream<'static, Result<EntityChunk, StoreError>>,
}

impl StoredState {
    /// Reads all chunks into one value, for a caller that needs the whole state at once.
    ///
    /// # Errors
    /// The first error of the chunks.
    pub async fn whole(self) -> Result<LoadedState, StoreError> {
        let Self { revision, note, mut chunks } = self;
        let mut entities = Vec::new();
        while let Some(chunk) = chunks.try_next().await? {
            entities.extend(chunk.into_entities());
        }
        Ok(LoadedState { revision, entities, note })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_ends_at_its_entities_or_at_its_bytes_and_takes_one_entity_of_any_size() {
        let mut many = EntityChunk::default();
        for _ in 0..MAX_CHUNK_ENTITIES {
            assert!(many.has_room(b"", b""));
            many.push(Vec::new(), Vec::new());
        }
        assert!(!many.has_room(b"", b""));
        let mut large = EntityChunk::default();
        assert!(large.has_room(b"key", &vec![0; 2 * MAX_CHUNK_BYTES]), "else it would never be read");
        large.push(b"key".to_vec(), vec![0; MAX_CHUNK_BYTES - 5]);
        assert!(large.has_room(b"k", b"v") && !large.has_room(b"k", b"va"), "{} bytes", large.bytes());
    }
}
