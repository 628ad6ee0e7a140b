//! The reading of all entities at one moment, by a thread of its own: RocksDB's snapshots borrow the database.

use std::sync::Arc;

use futures_util::{Stream, StreamExt as _, stream};
use periapt_host_api::Revision;
use periapt_store::{EntityChunk, StoreError, StoredState};
use rocksdb::IteratorMode;
use tokio::sync::mpsc;

use crate::{Inner, damaged, families::ENTITIES, schema};

/// The number of chunks that wait for their reader. One more is being filled meanwhile.
const AHEAD: usize = 1;

/// A part of what is read, in this order: the head, chunks, the end.
enum Part {
    Head(Revision, Option<Vec<u8>>),
    Chunk(EntityChunk),
    /// Without it, a thread that ended early would make a part of the state pass for the whole.
    End,
}

type Parts = mpsc::Receiver<Result<Part, StoreError>>;

/// Begins to read, and returns once the head was read.
pub(crate) async fn load(inner: Arc<Inner>) -> Result<StoredState, StoreError> {
    let mut parts = begin(inner);
    match parts.recv().await {
        Some(Ok(Part::Head(revision, note))) => {
            Ok(StoredState { revision, note, chunks: chunks(parts).boxed() })
        }
        Some(Err(error)) => Err(error),
        Some(Ok(Part::Chunk(_) | Part::End)) | None => Err(ended()),
    }
}

/// Starts the thread. It ends once its parts have no reader any more.
fn begin(inner: Arc<Inner>) -> Parts {
    let (sender, parts) = mpsc::channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let read = read(&inner, |part| sender.blocking_send(Ok(part)).is_ok());
        // First the database, then the word of the end: its reader may close the store and open it again at once.
        drop(inner);
        // A reader that is gone needs no end.
        let _ = sender.blocking_send(read.map(|()| Part::End));
    });
    parts
}

/// Reads the head, and all entities in chunks, until `take` returns false.
fn read(inner: &Inner, mut take: impl FnMut(Part) -> bool) -> Result<(), StoreError> {
    inner.check_usable()?;
    let snapshot = inner.db.snapshot();
    schema::replacing::refuse_under_way(&snapshot)?;
    let (revision, note) = schema::head_and_note(&snapshot)?;
    if !take(Part::Head(revision, note)) {
        return Ok(());
    }
    let mut chunk = EntityChunk::default();
    for row in snapshot.iterator_cf(inner.family(ENTITIES)?, IteratorMode::Start) {
        let (key, value) = row.map_err(damaged)?;
        if !chunk.has_room(&key, &value) && !take(Part::Chunk(std::mem::take(&mut chunk))) {
            return Ok(());
        }
        chunk.push(key.into_vec(), value.into_vec());
    }
    if !chunk.entities().is_empty() {
        take(Part::Chunk(chunk));
    }
    Ok(())
}

/// Returns the chunks that follow the head.
fn chunks(parts: Parts) -> impl Stream<Item = Result<EntityChunk, StoreError>> + Send + 'static {
    stream::try_unfold(parts, |mut parts| async move {
        match parts.recv().await {
            Some(Ok(Part::Chunk(chunk))) => Ok(Some((chunk, parts))),
            Some(Ok(Part::End)) => Ok(None),
            Some(Err(error)) => Err(error),
            Some(Ok(Part::Head(..))) | None => Err(ended()),
        }
    })
}

fn ended() -> StoreError {
    StoreError::Failed("the store's thread ended before all was read".into())
}

#[cfg(test)]
mod tests {
    use periapt_host_api::StoreId;
    use periapt_store::{Batch, LoadedState, MAX_CHUNK_ENTITIES, Store as _};
    use tempfile::TempDir;

    use super::*;
    use crate::RocksStore;

    /// The chunks that the entities of a filled store make.
    const CHUNKS: usize = 8;

    /// Returns a store with entities for some full chunks.
    async fn filled(directory: &TempDir) -> RocksStore {
        let store = RocksStore::open(directory.path(), StoreId(uuid::Uuid::from_u128(7))).await.unwrap();
        let entities = (0..CHUNKS * MAX_CHUNK_ENTITIES).map(|number| {
            let key = format!("{number:09}").into_bytes();
            (key, b"value".to_vec())
        });
        let state = LoadedState { revision: Revision(3), entities: entities.collect(), note: None };
        store.replace(state).await.unwrap();
        store
    }

    #[tokio::test]
    async fn a_reader_that_counts_takes_each_part_once_and_one_that_is_gone_gets_no_more() {
        let directory = TempDir::new().unwrap();
        let store = filled(&directory).await;
        for taken in 1..=CHUNKS + 1 {
            let mut count = 0;
            read(&store.inner, |_| {
                count += 1;
                count < taken
            })
            .unwrap();
            assert_eq!(count, taken, "nothing is read for a reader that is gone");
        }
        let mut count = 0;
        read(&store.inner, |part| {
            count += 1;
            match part {
                Part::Head(revision, note) => assert_eq!((count, revision, note), (1, Revision(3), None)),
                Part::Chunk(chunk) => assert_eq!(chunk.entities().len(), MAX_CHUNK_ENTITIES),
                Part::End => panic!("the end is told by the caller"),
            }
            true
        })
        .unwrap();
        assert_eq!(count, 1 + CHUNKS);
    }

    #[tokio::test]
    async fn a_slow_reader_has_one_chunk_waiting_whatever_the_size_of_the_state() {
        let directory = TempDir::new().unwrap();
        let mut parts = begin(Arc::clone(&filled(&directory).await.inner));
        let mut most = 0;
        while let Some(part) = parts.recv().await {
            if matches!(part.unwrap(), Part::End) {
                break;
            }
            // The thread is ahead as far as it may be.
            while parts.is_empty() && !parts.is_closed() {
                tokio::task::yield_now().await;
            }
            most = most.max(parts.len());
        }
        assert_eq!(most, AHEAD);
    }

    #[tokio::test]
    async fn a_reader_that_leaves_gives_the_database_back() {
        let directory = TempDir::new().unwrap();
        let store = filled(&directory).await;
        let mut state = store.load().await.unwrap();
        state.chunks.next().await.unwrap().unwrap();
        drop(state);
        drop(store);
        while let Err(error) = RocksStore::open(directory.path(), StoreId(uuid::Uuid::nil())).await {
            assert!(matches!(error, StoreError::InUse(_)), "the thread is about to notice it: {error}");
        }
    }

    #[tokio::test]
    async fn a_store_that_was_read_to_its_end_can_be_opened_again_at_once() {
        let directory = TempDir::new().unwrap();
        for _ in 0..20 {
            let store = RocksStore::open(directory.path(), StoreId(uuid::Uuid::from_u128(7))).await.unwrap();
            store.load().await.unwrap().whole().await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_store_whose_last_write_failed_is_not_read() {
        let directory = TempDir::new().unwrap();
        let store = filled(&directory).await;
        store.inner.failed.store(true, std::sync::atomic::Ordering::Release);
        let refused = store.load().await.err();
        assert!(matches!(refused, Some(StoreError::Failed(_))), "{refused:?}");
        let refused = store.commit(Batch::default()).await;
        assert!(matches!(refused, Err(StoreError::Failed(_))), "{refused:?}");
    }
}
