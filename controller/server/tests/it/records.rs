//! Records whose owners are gone.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{ModelUuid, Revision, StoreId, Timestamp, command::Command};
use periapt_model::RecordKind;
use periapt_store::{Batch, MemoryStore, NewRecord, Store as _, key};

use crate::fixture::{Fixture, PATIENCE, application, next_where};

/// Waits until the store lists just these sequences of those that fit.
async fn wait_for_sequences(memory: &MemoryStore, fits: impl Fn(&[u8]) -> bool, wanted: &[Vec<u8>]) {
    let listed = async {
        loop {
            let mut names = memory.sequences(None, 9_999).await.unwrap();
            names.retain(|name| fits(name));
            if names == wanted {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.unwrap();
}

#[tokio::test]
async fn records_of_a_model_that_was_removed_before_a_crash_are_forgotten_at_the_next_start() {
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let gone = ModelUuid(uuid::Uuid::from_u128(99));
    let records = [RecordKind::Log, RecordKind::Status, RecordKind::Journal].map(|kind| NewRecord {
        prefix: key::record_prefix(&gone, kind, "tiny/0"),
        at: "2026-01-01T00:00:00Z".parse::<Timestamp>().unwrap(),
        body: vec![],
    });
    let batch = Batch { expected: Revision(0), entities: vec![], records: records.into() };
    memory.commit(batch).await.unwrap();
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    wait_for_sequences(&memory, |name| name.starts_with(&key::records_of_model(&gone)), &[]).await;
    fixture.stop().await;
}

#[tokio::test]
async fn records_of_a_removed_unit_go_when_they_are_old() {
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let model = deployed.model.uuid;
    let of_unit = key::record_prefix(&model, RecordKind::Status, "tiny/0");
    let fits = |name: &[u8]| name == of_unit;
    wait_for_sequences(&memory, fits, std::slice::from_ref(&of_unit)).await;
    let remove = Command::RemoveApplication {
        application: application("tiny"),
        force: Some(periapt_host_api::command::Force { max_wait: 0 }),
    };
    deployed.model.command(remove).await.unwrap();
    let mut status = fixture.client.watch_status(&deployed.model.selector()).await.unwrap();
    next_where(&mut status, |status| status.applications.is_empty()).await;
    wait_for_sequences(&memory, fits, std::slice::from_ref(&of_unit)).await;
    fixture.clock.advance(Duration::from_secs(15 * 24 * 3_600));
    wait_for_sequences(&memory, fits, &[]).await;
    fixture.stop().await;
}
