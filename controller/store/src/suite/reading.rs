//! The part of the suite on reading all entities: bounded chunks of one moment, whatever is written meanwhile.

use futures_util::TryStreamExt as _;
use periapt_host_api::Revision;

use super::whole;
use crate::{Batch, LoadedState, MAX_CHUNK_BYTES, MAX_CHUNK_ENTITIES, Store, StoredEntity, StoredState};

/// The number of small entities: some chunks, and a part of one.
const SMALL: usize = 3 * MAX_CHUNK_ENTITIES + 7;

/// The number of large entities: a chunk has room for three.
const LARGE: usize = 10;

/// Runs on a store with any content, which is replaced.
///
/// # Panics
/// Panics if the store violates the contract.
#[expect(clippy::expect_used, reason = "a test suite says what failed by panicking")]
pub(super) async fn run(store: &impl Store) {
    let small = (0..SMALL).map(|number| (format!("a-{number:06}").into_bytes(), b"small".to_vec()));
    let large =
        (0..LARGE).map(|number| (format!("b-{number:06}").into_bytes(), vec![1; MAX_CHUNK_BYTES / 4]));
    let largest = (b"c".to_vec(), vec![2; 2 * MAX_CHUNK_BYTES]);
    let before = LoadedState {
        revision: Revision(1_000),
        entities: small.chain(large).chain([largest, (b"d".to_vec(), Vec::new())]).collect(),
        note: Some(b"before".to_vec()),
    };
    store.replace(before.clone()).await.expect("the state is replaced");

    let stored = store.load().await.expect("a store can be read");
    let chunks = read_counting(stored, async |_| {}).await;
    // Three of small entities, one of the remaining ones and three large ones, two of three, and three of one each.
    assert_eq!(chunks, [1_000, 1_000, 1_000, 7 + 3, 3, 3, 1, 1, 1], "each chunk is as full as it may be");

    let head = before.revision;
    let written = Batch {
        expected: head,
        entities: vec![
            (b"0".to_vec(), Some(b"new, before all others".to_vec())),
            (b"a-000000".to_vec(), None),
            (b"a-003000".to_vec(), Some(b"changed".to_vec())),
            (b"c".to_vec(), None),
            (b"e".to_vec(), Some(b"new, after all others".to_vec())),
        ],
        records: Vec::new(),
        note: Some(b"after".to_vec()),
    };
    let stored = store.load().await.expect("a store can be read");
    assert_eq!((stored.revision, &stored.note), (head, &before.note));
    let mut seen = Vec::new();
    let read = read_counting(stored, async |entities: Vec<StoredEntity>| {
        if seen.is_empty() {
            store.commit(written.clone()).await.expect("a batch is written while the store is read");
        }
        seen.extend(entities);
    });
    read.await;
    assert!(seen == before.entities, "what was read is not the state at the head that was told");
    let after = whole(store).await;
    assert_eq!((after.revision, after.note), (Revision(head.0 + 1), Some(b"after".to_vec())));
    assert_eq!(after.entities.len(), before.entities.len(), "two came, and two went");

    let stored = store.load().await.expect("a store can be read");
    let next = LoadedState { revision: Revision(2_000), ..LoadedState::default() };
    store.replace(next.clone()).await.expect("the state is replaced while the store is read");
    let read = stored.whole().await.expect("a store can be read to its end");
    assert_eq!(read.revision, after.revision);
    assert!(read.entities == after.entities, "a replaced state is read to its end");
    drop(store.load().await.expect("a store can be read, and its reader may leave"));
    assert_eq!(whole(store).await, next);
}

/// Reads a store chunk by chunk, and returns the number of entities in each. Holds one chunk at a time, and checks its
/// bounds.
///
/// # Panics
/// Panics if the store violates the contract.
#[expect(clippy::expect_used, reason = "a test suite says what failed by panicking")]
async fn read_counting(mut stored: StoredState, mut take: impl AsyncFnMut(Vec<StoredEntity>)) -> Vec<usize> {
    let (mut counts, mut last) = (Vec::new(), None::<Vec<u8>>);
    while let Some(chunk) = stored.chunks.try_next().await.expect("a chunk can be read") {
        let entities = chunk.entities();
        let sizes = entities.iter().map(|(key, value)| key.len() + value.len());
        assert_eq!(chunk.bytes(), sizes.sum::<usize>(), "a chunk knows its size");
        assert!(entities.len() <= MAX_CHUNK_ENTITIES, "{} entities in a chunk", entities.len());
        assert!(
            entities.len() == 1 || chunk.bytes() <= MAX_CHUNK_BYTES,
            "{} bytes in a chunk of several",
            chunk.bytes()
        );
        for (key, _) in entities {
            assert!(last.as_ref().is_none_or(|last| last < key), "keys rise, and each comes once");
            last = Some(key.clone());
        }
        counts.push(entities.len());
        take(chunk.into_entities()).await;
    }
    assert!(counts.iter().all(|count| *count > 0), "no chunk is empty");
    counts
}
