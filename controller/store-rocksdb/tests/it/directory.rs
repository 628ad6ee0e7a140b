//! Databases as files.

use std::{
    fs,
    path::{Path, PathBuf},
};

use periapt_host_api::{Revision, StoreId, Timestamp};
use periapt_store::{Batch, LoadedState, NewRecord, Order, Record, Store as _, StoreError};
use periapt_store_rocksdb::RocksStore;
use tempfile::TempDir;

pub(crate) const ID: StoreId = StoreId(uuid::Uuid::from_u128(7));

/// The content of a store.
#[derive(Debug, PartialEq)]
pub(crate) struct Content {
    id: StoreId,
    pub(crate) loaded: LoadedState,
    /// Each sequence with its records.
    pub(crate) records: Vec<(Vec<u8>, Vec<Record>)>,
}

pub(crate) async fn content(store: &RocksStore) -> Result<Content, StoreError> {
    let loaded = store.load().await?.whole().await?;
    let mut records = Vec::new();
    for name in store.sequences(None, 999).await? {
        let of_it = store.records(&name, Order::OldestFirst { after: None }, 999).await?;
        records.push((name, of_it));
    }
    Ok(Content { id: store.id(), loaded, records })
}

/// Opens the store in a directory, reads everything, and closes it.
pub(crate) async fn read(directory: &Path) -> Result<Content, StoreError> {
    content(&RocksStore::open(directory, StoreId(uuid::Uuid::from_u128(8))).await?).await
}

/// The most commits that [`database`] makes.
pub(crate) const COMMITS: u64 = 10;

/// Creates a directory `store` with up to five commits in tables, and the others in the log alone.
pub(crate) async fn database(commits: u64) -> TempDir {
    let directory = TempDir::new().unwrap();
    let at = directory.path().join("store");
    let mut store = RocksStore::open(&at, ID).await.unwrap();
    for number in 0..commits {
        if number == COMMITS / 2 {
            drop(store);
            // Opening a store moves the log's commits into tables.
            store = RocksStore::open(&at, ID).await.unwrap();
        }
        let entities =
            vec![(format!("key-{number}").into_bytes(), Some(vec![b'a'; 40])), (b"key-0".to_vec(), None)];
        let record = NewRecord {
            prefix: format!("log-{}", number % 4).into_bytes(),
            at: Timestamp::UNIX_EPOCH,
            body: number.to_string().into_bytes(),
        };
        let batch =
            Batch { expected: Revision(number), entities, records: vec![record.clone(), record], note: None };
        store.commit(batch).await.unwrap();
    }
    directory
}

/// Copies the files into a new directory.
pub(crate) fn copy(from: &Path) -> TempDir {
    let copy = TempDir::new().unwrap();
    for file in files(from) {
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    copy
}

/// Returns the files of a database in order, without the info log and other files that the database does not depend
/// on.
pub(crate) fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_part = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        !["LOG", "LOCK", "OPTIONS", "IDENTITY"].iter().any(|other| name.starts_with(other))
    };
    let mut files: Vec<PathBuf> = entries.filter(is_part).collect();
    files.sort();
    files
}

/// Returns the last file whose name starts or ends with `part`.
pub(crate) fn file(directory: &Path, part: &str) -> PathBuf {
    let fits = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        name.starts_with(part) || name.ends_with(part)
    };
    files(directory).into_iter().rfind(fits).unwrap()
}
