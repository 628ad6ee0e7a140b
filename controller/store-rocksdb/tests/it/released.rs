//! Databases of released programs stay readable for ever. `tests/fixtures` keeps one directory of each schema, as a
//! controller left it.

use std::path::Path;

use periapt_host_api::StoreId;
use periapt_store::{Store as _, key};
use periapt_store_rocksdb::RocksStore;

use crate::directory::{content, copy};

#[tokio::test]
async fn the_database_of_a_controller_of_schema_1_opens_with_all_that_is_in_it() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/schema-1");
    let directory = copy(&fixture);
    let store = RocksStore::open(directory.path(), StoreId(uuid::Uuid::nil())).await.unwrap();
    assert_ne!(store.id(), StoreId(uuid::Uuid::nil()), "it has an identity of its own");
    let upgraded = content(&store).await.unwrap();
    assert!(!upgraded.loaded.entities.is_empty());
    for (key, _) in &upgraded.loaded.entities {
        key::parse_entity(key).unwrap();
    }
    let mut models: Vec<_> =
        upgraded.records.iter().filter_map(|(name, _)| key::parse_records(name)).collect();
    assert_eq!(models.len(), upgraded.records.len(), "each sequence belongs to a model");
    models.dedup_by_key(|(model, _)| *model);
    assert_eq!(models.len(), 2, "the one that is there, and the one that was removed");
    assert!(upgraded.records.iter().all(|(_, records)| !records.is_empty()));
    drop(store);
    let again = RocksStore::open(directory.path(), StoreId(uuid::Uuid::nil())).await.unwrap();
    assert_eq!(content(&again).await.unwrap(), upgraded, "upgraded once is upgraded");
}
