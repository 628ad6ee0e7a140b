//! Databases of older schemas as their programs wrote them, and upgrades that are interrupted anywhere.

use periapt_host_api::{Revision, StoreId, Timestamp};
use periapt_store::{Order, RecordPosition, Retention, Store as _};
use rocksdb::{ColumnFamilyDescriptor, Options};
use tempfile::TempDir;

use super::*;
use crate::{RocksStore, database, key};

const ID: [u8; 16] = [7; 16];

/// Writes a database as the program of schema 1 did: one entity, and one record in each of these sequences.
fn write_schema_1(directory: &TempDir, names: &[String]) {
    let mut options = Options::default();
    options.create_if_missing(true);
    options.create_missing_column_families(true);
    let families =
        ["default", "entities", "records"].map(|name| ColumnFamilyDescriptor::new(name, Options::default()));
    let db = DB::open_cf_descriptors(&options, directory.path(), families).unwrap();
    let mut writes = WriteBatch::default();
    writes.put("schema", 1u32.to_be_bytes());
    writes.put("store-id", ID);
    writes.put("head", 5u64.to_be_bytes());
    writes.put_cf(db.cf_handle("entities").unwrap(), "key", "value");
    for name in names {
        for index in 0..3 {
            let at = RecordPosition { revision: Revision(5), index };
            let value = key::body(Timestamp::UNIX_EPOCH, b"body");
            writes.put_cf(db.cf_handle("records").unwrap(), key::record(name.as_bytes(), at), value);
        }
    }
    db.write(writes).unwrap();
}

fn names() -> Vec<String> {
    (0..7).map(|number| format!("model/status/unit-{number}\0")).collect()
}

fn opened(directory: &TempDir) -> Result<RocksStore, StoreError> {
    let other = StoreId(uuid::Uuid::from_u128(9));
    RocksStore::open_blocking(directory.path(), other)
}

async fn check_upgraded(store: &RocksStore, names: &[String]) {
    assert_eq!(store.id().0.as_bytes(), &ID, "a store keeps its identity");
    let loaded = store.load().await.unwrap().whole().await.unwrap();
    assert_eq!(loaded.revision, Revision(5));
    assert_eq!(loaded.entities, [(b"key".to_vec(), b"value".to_vec())]);
    let listed = store.sequences(None, 99).await.unwrap();
    assert_eq!(listed, names.iter().map(|name| name.clone().into_bytes()).collect::<Vec<_>>());
    for name in names {
        let order = Order::OldestFirst { after: None };
        assert_eq!(store.records(name.as_bytes(), order, 99).await.unwrap().len(), 3);
    }
    assert_eq!(schema(&store.inner.db).unwrap(), Some(SCHEMA));
    assert_eq!(store.inner.db.get(UPGRADE).unwrap(), None);
}

#[tokio::test]
async fn a_database_of_schema_1_is_upgraded_when_it_is_opened() {
    for names in [vec![], names()] {
        let directory = TempDir::new().unwrap();
        write_schema_1(&directory, &names);
        for _ in 0..2 {
            check_upgraded(&opened(&directory).unwrap(), &names).await;
        }
    }
}

#[tokio::test]
async fn an_upgrade_that_ended_after_any_batch_goes_on() {
    // Seven sequences, two per batch: four batches.
    for batches in 0..=4 {
        let directory = TempDir::new().unwrap();
        write_schema_1(&directory, &names());
        let db = database::open(directory.path()).unwrap();
        for batch in 0..batches {
            assert!(advance(&db, 2).unwrap());
            assert_eq!(schema(&db).unwrap(), Some(2), "an older program refuses it from the first batch on");
            assert_eq!(db.get(UPGRADE).unwrap().is_some(), batch < 3);
        }
        drop(db);
        check_upgraded(&opened(&directory).unwrap(), &names()).await;
    }
}

#[test]
fn a_newer_schema_is_refused_and_left_as_it_is() {
    let directory = TempDir::new().unwrap();
    drop(opened(&directory).unwrap());
    let db = database::open(directory.path()).unwrap();
    db.put("schema", (SCHEMA + 1).to_be_bytes()).unwrap();
    drop(db);
    let files = |directory: &TempDir| -> Vec<_> {
        let entries = std::fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path());
        // RocksDB's info log is no part of the database.
        let parts = entries.filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with("LOG"));
        let mut files: Vec<_> = parts.map(|path| (path.clone(), std::fs::read(path).unwrap())).collect();
        files.sort();
        files
    };
    let before = files(&directory);
    let refused = opened(&directory).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the store has schema 3, this program knows up to 2: use a newer periapt"
    );
    assert!(files(&directory) == before, "a refused database was written");
}

#[test]
fn a_newer_schema_with_parts_that_are_not_known_is_refused_as_newer() {
    let directory = TempDir::new().unwrap();
    drop(opened(&directory).unwrap());
    let mut db = database::open(directory.path()).unwrap();
    db.create_cf("of-the-future", &Options::default()).unwrap();
    db.put("schema", (SCHEMA + 1).to_be_bytes()).unwrap();
    drop(db);
    assert!(matches!(opened(&directory), Err(StoreError::TooNew { found: 3, known: 2 })));
}

#[test]
fn rows_without_a_schema_are_no_new_database() {
    for row in ["head", "store-id"] {
        let directory = TempDir::new().unwrap();
        database::open(directory.path()).unwrap().put(row, "x").unwrap();
        assert!(matches!(opened(&directory), Err(StoreError::Foreign(_))), "{row}");
    }
    let directory = TempDir::new().unwrap();
    drop(database::open(directory.path()).unwrap());
    assert!(opened(&directory).is_ok(), "a crash before the first row leaves a new one");
}

#[tokio::test]
async fn a_record_that_is_written_while_its_sequence_is_emptied_stays_listed() {
    let directory = TempDir::new().unwrap();
    let store = opened(&directory).unwrap();
    let append = |expected| periapt_store::Batch {
        expected,
        entities: vec![],
        records: vec![periapt_store::NewRecord {
            prefix: b"log".to_vec(),
            at: Timestamp::UNIX_EPOCH,
            body: vec![],
        }],
        note: None,
    };
    let mut head = Revision(0);
    for _ in 0..200 {
        let (written, pruned) = futures_util::join!(
            store.commit(append(head)),
            store.prune(b"log", Box::new(|_| Retention::Drop))
        );
        (head, _) = (written.unwrap(), pruned.unwrap());
        let left = store.records(b"log", Order::OldestFirst { after: None }, 9).await.unwrap();
        let listed = store.sequences(None, 9).await.unwrap();
        assert_eq!(listed.is_empty(), left.is_empty(), "{left:?}");
    }
}
