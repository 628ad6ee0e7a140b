//! RocksDB passes the conformance suite of stores, also over a restart.

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_host_api::{Revision, StoreId};
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
async fn a_backup_holds_what_was_committed_before_it() {
    let directory = TempDir::new().unwrap();
    let store = RocksStore::open(&directory.path().join("live"), ID).await.unwrap();
    let put = |key: &[u8], expected| Batch {
        expected,
        entities: vec![(key.to_vec(), Some(b"value".to_vec()))],
        ..Batch::default()
    };
    let first = store.commit(put(b"before", Revision(0))).await.unwrap();
    store.checkpoint(&directory.path().join("backup")).await.unwrap();
    store.commit(put(b"after", first)).await.unwrap();

    let backup = RocksStore::open(&directory.path().join("backup"), ID).await.unwrap();
    let loaded = backup.load().await.unwrap();
    assert_eq!(loaded.revision, first);
    assert_eq!(loaded.entities, [(b"before".to_vec(), b"value".to_vec())]);
}
