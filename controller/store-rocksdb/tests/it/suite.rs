//! RocksDB passes the conformance suite of stores, also over a restart.

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::StoreId;
use periapt_store::{Batch, Store as _, StoreError, suite};
use periapt_store_rocksdb::RocksStore;
use tempfile::TempDir;

const ID: StoreId = StoreId(uuid::Uuid::from_u128(7));

struct InDirectory(TempDir);

impl suite::TestedStore for InDirectory {
    type Store = RocksStore;

    fn open(&mut self) -> BoxFuture<'_, RocksStore> {
        async { RocksStore::open(self.0.path(), ID).await.unwrap() }.boxed()
    }

    fn is_durable(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn passes_the_suite_of_stores() {
    suite::run(InDirectory(TempDir::new().unwrap())).await;
}

#[tokio::test]
async fn a_second_opener_is_told_that_the_store_is_in_use() {
    let directory = TempDir::new().unwrap();
    let _first = RocksStore::open(directory.path(), ID).await.unwrap();
    let second = RocksStore::open(directory.path(), ID).await;
    assert!(matches!(second, Err(StoreError::InUse(_))), "{second:?}");
}

#[tokio::test]
async fn a_copy_holds_what_was_committed_before_it() {
    let directory = TempDir::new().unwrap();
    let store = RocksStore::open(&directory.path().join("live"), ID).await.unwrap();
    suite::run_checkpoint(&store, &directory.path().join("copy"), |copy| {
        let copy = copy.to_owned();
        async move { RocksStore::open(&copy, ID).await.unwrap() }.boxed()
    })
    .await;
}

#[tokio::test]
async fn an_adopted_copy_has_an_identity_of_its_own_and_an_empty_directory_is_refused() {
    let directory = TempDir::new().unwrap();
    let (live, copy) = (directory.path().join("live"), directory.path().join("copy"));
    let store = RocksStore::open(&live, ID).await.unwrap();
    let batch = Batch {
        entities: vec![(b"key".to_vec(), Some(b"value".to_vec()))],
        note: Some(b"the end of a log".to_vec()),
        ..Batch::default()
    };
    let head = store.commit(batch).await.unwrap();
    store.checkpoint(&copy).await.unwrap();
    let own = StoreId(uuid::Uuid::from_u128(8));
    let adopted = RocksStore::adopt(&copy, own).await.unwrap();
    // A store is open until all of it is read.
    let read = adopted.load().await.unwrap().whole().await.unwrap();
    assert_eq!((adopted.id(), read.revision), (own, head));
    drop(adopted);
    let again = RocksStore::open(&copy, ID).await.unwrap();
    assert_eq!((again.id(), again.load().await.unwrap().note), (own, None));
    assert!(store.load().await.unwrap().note.is_some());
    let nothing = RocksStore::adopt(&directory.path().join("none"), own).await;
    assert!(matches!(nothing, Err(StoreError::Foreign(_))), "{nothing:?}");
    assert!(!directory.path().join("none").exists());
}
