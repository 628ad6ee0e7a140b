//! The conformance suite of [`Store`], which the tests of each implementation run.

mod reading;

use std::{path::Path, sync::mpsc};

use futures_util::future::BoxFuture;
use periapt_host_api::{Revision, Timestamp};

use crate::{Batch, LoadedState, NewRecord, Order, Record, Retention, RetentionPolicy, Store, StoreError};

/// A store under test that can be closed and opened again.
pub trait TestedStore {
    /// The store's type.
    type Store: Store;
    /// Opens the store. A later call, after the earlier store is dropped, opens the same data.
    fn open(&mut self) -> BoxFuture<'_, Self::Store>;
    /// Returns true if commits survive closing and opening.
    fn is_durable(&self) -> bool;
}

/// Checks that a store with files can be copied while it is in use. `open` opens the copy.
///
/// # Panics
/// Panics if the store violates the contract: this is a test.
#[expect(clippy::expect_used, reason = "a test suite says what failed by panicking")]
pub async fn run_checkpoint<S: Store>(
    store: &S,
    directory: &Path,
    open: impl FnOnce(&Path) -> BoxFuture<'_, S>,
) {
    let put = |key: &str, expected| Batch {
        expected,
        entities: vec![(key.as_bytes().to_vec(), Some(b"value".to_vec()))],
        records: vec![NewRecord { prefix: b"log".to_vec(), at: Timestamp::UNIX_EPOCH, body: key.into() }],
        note: Some(key.into()),
    };
    let before = store.load().await.expect("a store can be read");
    let first = store.commit(put("before", before.revision)).await.expect("a batch is written");
    let copied = store.checkpoint(directory).await.expect("a store is copied");
    assert_eq!(copied, first, "a copy tells its revision");
    store.commit(put("after", first)).await.expect("a batch is written");
    let again = store.checkpoint(directory).await;
    assert!(matches!(again, Err(StoreError::Refused(_))), "a copy replaces nothing: {again:?}");

    let copy = open(directory).await;
    assert_eq!(copy.id(), store.id(), "a copy has the store's identity");
    let loaded = whole(&copy).await;
    assert_eq!((loaded.revision, loaded.note), (first, Some(b"before".to_vec())));
    let keys: Vec<_> = loaded.entities.iter().map(|(key, _)| key.as_slice()).collect();
    assert!(keys.contains(&b"before".as_slice()), "a copy has what was committed before it");
    assert!(!keys.contains(&b"after".as_slice()), "a copy has nothing that was committed later");
    let records = copy.records(b"log", Order::OldestFirst { after: None }, 9).await;
    assert_eq!(records.expect("records are read").len(), 1, "a copy has the records of its revision");
}

/// Runs the whole suite on a fresh, empty store.
///
/// # Panics
/// Panics if the store violates the contract: this is a test.
#[expect(clippy::expect_used, clippy::panic, reason = "a test suite says what failed by panicking")]
pub async fn run(mut tested: impl TestedStore) {
    let store = tested.open().await;
    let id = store.id();
    let empty = whole(&store).await;
    assert!(empty.entities.is_empty(), "a fresh store holds nothing");

    let put = |key: &str, value: &str| (key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()));
    let put_again = put;
    let record = |prefix: &str, seconds: i64, body: &str| NewRecord {
        prefix: prefix.as_bytes().to_vec(),
        at: Timestamp::from_second(seconds).expect("a small number of seconds is a time"),
        body: body.as_bytes().to_vec(),
    };

    let first = store
        .commit(Batch {
            expected: empty.revision,
            entities: vec![put("b", "1"), put("a", "1"), put("\u{0}", ""), put("\u{ff}", "high")],
            records: vec![
                record("log", 10, "one"),
                record("log", 20, "two"),
                record("log2", 5, "other"),
                record("log\0", 5, ""),
            ],
            note: Some(b"first".to_vec()),
        })
        .await
        .expect("a batch is written");
    assert!(first > empty.revision, "revisions rise");
    let size = store.size().await.expect("a store can be measured");
    assert!(size > 0, "a store that holds something has a size");
    if tested.is_durable() {
        assert!(store.sync_time().is_some(), "a durable store measures its sync");
    }

    let second = store
        .commit(Batch {
            expected: first,
            entities: vec![put("a", "2"), (b"b".to_vec(), None), (b"never".to_vec(), None)],
            records: vec![record("log", 30, "three"), record("log", 25, "four")],
            note: None,
        })
        .await
        .expect("a second batch is written");
    assert!(second > first, "revisions rise");

    match store.commit(Batch { expected: first, entities: vec![put("a", "3")], ..Batch::default() }).await {
        Err(StoreError::HeadMoved { expected, have }) => assert_eq!((expected, have), (first, second)),
        other => panic!("a batch for an old head is refused, got {other:?}"),
    }

    let store = if tested.is_durable() {
        drop(store);
        tested.open().await
    } else {
        store
    };
    assert_eq!(store.id(), id, "a store keeps its identity");
    let loaded = whole(&store).await;
    assert_eq!(loaded.revision, second);
    let entities: Vec<_> = [("\u{0}", ""), ("a", "2"), ("\u{ff}", "high")]
        .map(|(key, value)| (key.as_bytes().to_vec(), value.as_bytes().to_vec()))
        .into();
    assert_eq!(loaded.entities, entities, "entities are sorted by key and those deleted are gone");
    assert_eq!(loaded.note.as_deref(), Some(&b"first"[..]), "a batch without a note leaves the earlier one");

    let bodies = async |order, limit| -> Vec<String> {
        let records = store.records(b"log", order, limit).await.expect("records can be read");
        records.into_iter().map(|record| String::from_utf8_lossy(&record.body).into_owned()).collect()
    };
    let oldest = Order::OldestFirst { after: None };
    let newest = Order::NewestFirst { before: None };
    assert_eq!(bodies(oldest, 99).await, ["one", "two", "three", "four"], "in the order of appending");
    assert_eq!(bodies(oldest, 2).await, ["one", "two"]);
    assert_eq!(bodies(newest, 3).await, ["four", "three", "two"]);
    let all = store.records(b"log", oldest, 99).await.expect("records can be read");
    let at = |index: usize| all.get(index).expect("four records").position;
    assert_eq!(bodies(Order::OldestFirst { after: Some(at(1)) }, 99).await, ["three", "four"]);
    assert_eq!(bodies(Order::NewestFirst { before: Some(at(1)) }, 99).await, ["one"]);
    assert_eq!(at(2).revision, second);

    let names = async |after: Option<&str>, limit| -> Vec<String> {
        let names = store.sequences(after.map(str::as_bytes), limit).await.expect("sequences can be listed");
        names.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect()
    };
    assert_eq!(names(None, 99).await, ["log", "log\0", "log2"], "each once, in order");
    assert_eq!(names(None, 1).await, ["log"]);
    assert_eq!(names(Some("log"), 1).await, ["log\0"]);
    assert_eq!(names(Some("log1"), 99).await, ["log2"]);
    let prune = async |sequence: &str, policy: RetentionPolicy| -> usize {
        store.prune(sequence.as_bytes(), policy).await.expect("records can be pruned")
    };
    assert_eq!(prune("log\0", Box::new(|_| Retention::Drop)).await, 1);
    assert_eq!(names(None, 99).await, ["log", "log2"], "a sequence of which nothing is left is not listed");

    let (shown, told) = mpsc::channel();
    let one_and_four = move |record: &Record| {
        shown.send(record.body.clone()).expect("the test listens");
        match record.body.as_slice() {
            b"one" | b"four" => Retention::Drop,
            _ => Retention::Keep,
        }
    };
    assert_eq!(prune("log", Box::new(one_and_four)).await, 2);
    let told: Vec<Vec<u8>> = told.iter().collect();
    assert_eq!(told, [&b"four"[..], b"three", b"two", b"one"], "each once, the newest first");
    assert_eq!(bodies(oldest, 99).await, ["two", "three"]);
    assert_eq!(prune("log", Box::new(|_| Retention::Keep)).await, 0);
    assert_eq!(bodies(oldest, 99).await, ["two", "three"]);
    assert_eq!(store.records(b"log2", oldest, 99).await.expect("others stay").len(), 1);

    store.forget(b"lo").await.expect("sequences can be forgotten");
    assert_eq!(bodies(oldest, 99).await, [""; 0]);
    assert_eq!(store.records(b"log2", oldest, 99).await.expect("reading nothing").len(), 0);
    assert_eq!(names(None, 99).await, [""; 0]);
    assert_eq!(whole(&store).await.entities.len(), 3, "entities stay");

    let third = store
        .commit(Batch { expected: second, ..Batch::default() })
        .await
        .expect("an empty batch is a commit");
    assert!(third > second && third != Revision(0));

    let put =
        |body: &str| Batch { expected: third, records: vec![record("race", 1, body)], ..Batch::default() };
    let (one, other) = futures_util::join!(store.commit(put("one")), store.commit(put("other")));
    assert!(one.is_ok() != other.is_ok(), "of two batches for one head one is refused");
    assert_eq!(names(None, 99).await, ["race"], "one that was forgotten and written again is listed");
    let raced = store.load().await.expect("the head can be read").revision;

    let applied = Batch {
        expected: raced,
        entities: vec![put_again("a", "applied")],
        records: vec![record("race", 2, "applied")],
        note: Some(b"second".to_vec()),
    };
    let fourth = store.apply(applied.clone()).await.expect("a batch is applied");
    assert!(fourth > raced, "revisions rise");
    assert!(matches!(store.apply(applied).await, Err(StoreError::HeadMoved { .. })), "but not twice");
    let loaded = whole(&store).await;
    assert_eq!((loaded.revision, loaded.note), (fourth, Some(b"second".to_vec())));
    assert!(loaded.entities.contains(&(b"a".to_vec(), b"applied".to_vec())));
    assert_eq!(store.records(b"race", oldest, 99).await.expect("records can be read").len(), 2);
    store.sync().await.expect("what was applied can be synced");

    let replaced = LoadedState {
        revision: Revision(fourth.0 + 100),
        entities: vec![(b"".to_vec(), b"least".to_vec()), (b"new".to_vec(), b"1".to_vec())],
        note: Some(b"third".to_vec()),
    };
    store.replace(replaced.clone()).await.expect("the state is replaced");
    let further = store.records(b"race", oldest, 99).await.expect("records can be read");
    store.import(b"other", further.clone()).await.expect("records are imported");
    store.import(b"race", further.clone()).await.expect("records are imported once more");
    let store = if tested.is_durable() {
        drop(store);
        tested.open().await
    } else {
        store
    };
    assert_eq!(whole(&store).await, replaced, "nothing else is left");
    for sequence in [&b"race"[..], b"other"] {
        assert_eq!(store.records(sequence, oldest, 99).await.expect("records can be read"), further);
    }
    let next =
        Batch { expected: replaced.revision, entities: vec![put_again("new", "2")], ..Batch::default() };
    assert_eq!(store.commit(next).await.expect("a commit follows"), Revision(replaced.revision.0 + 1));
    let none = LoadedState { revision: Revision(7), ..LoadedState::default() };
    store.replace(none.clone()).await.expect("the state is replaced by nothing");
    assert_eq!(whole(&store).await, none);

    let entity = |key: &str| (key.as_bytes().to_vec(), b"staged".to_vec());
    store.stage(vec![entity("left")]).await.expect("an entity is staged");
    assert_eq!(whole(&store).await, none, "readers do not see it");
    store.unstage().await.expect("what is staged is deleted");
    store.stage(vec![entity("b"), entity("c")]).await.expect("entities are staged");
    store.stage(vec![entity("a")]).await.expect("further ones are staged");
    let staged = LoadedState {
        revision: Revision(9),
        entities: ["a", "b", "c"].map(entity).to_vec(),
        note: Some(b"staged".to_vec()),
    };
    let replaced = store.replace_by_staged(staged.revision, staged.note.clone()).await;
    replaced.expect("the state is replaced by the staged one");
    assert_eq!(whole(&store).await, staged);
    store.replace_by_staged(none.revision, None).await.expect("the state is replaced by what is staged now");
    assert_eq!(whole(&store).await, none, "what was staged has gone into the state");
    reading::run(&store).await;
}

/// Reads all that a store has.
#[expect(clippy::expect_used, reason = "a test suite says what failed by panicking")]
async fn whole(store: &impl Store) -> LoadedState {
    let stored = store.load().await.expect("a store can be read");
    stored.whole().await.expect("a store can be read to its end")
}
