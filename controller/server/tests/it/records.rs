//! Records of removed owners.

use std::{sync::Arc, time::Duration};

use periapt_client::ClientError;
use periapt_controller::Clock as _;
use periapt_host_api::{
    ErrorCode, ModelUuid, Revision, StoreId, Timestamp,
    command::Command,
    status::{StatusHistoryEntry, StatusHistoryQuery, StatusHistoryType, StatusKind},
};
use periapt_model::RecordKind;
use periapt_store::{Batch, MemoryStore, NewRecord, Order, Store as _, key};

use crate::fixture::{
    CountedStores, Faults, Fixture, TIMEOUT, Writes, application, code_of, next_where, options, run,
};

/// Waits until the store's matching sequences are exactly the wanted ones.
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
    tokio::time::timeout(TIMEOUT, listed).await.unwrap();
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
    let batch = Batch { expected: Revision(0), entities: vec![], records: records.into(), note: None };
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
        storage: Default::default(),
    };
    deployed.model.command(remove).await.unwrap();
    let mut status = fixture.client.watch_status(&deployed.model.selector()).await.unwrap();
    next_where(&mut status, |status| status.applications.is_empty()).await;
    wait_for_sequences(&memory, fits, std::slice::from_ref(&of_unit)).await;
    fixture.clock.advance(Duration::from_secs(15 * 24 * 3_600));
    wait_for_sequences(&memory, fits, &[]).await;
    fixture.stop().await;
}

fn of(entity: &str, kind: StatusHistoryType) -> StatusHistoryQuery {
    StatusHistoryQuery { entity: entity.to_owned(), kind, tail: None, since: None }
}

#[tokio::test]
async fn a_history_is_read_by_kind_number_and_time() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let model = deployed.model.selector();
    let read = async |query: StatusHistoryQuery| {
        let history = fixture.client.status_history(&model, &query).await?;
        let line = |entry: StatusHistoryEntry| format!("{} {}", entry.kind, entry.status);
        Ok::<Vec<String>, ClientError>(history.entries.into_iter().map(line).collect())
    };
    let all = read(of("tiny/0", StatusHistoryType::Unit)).await.unwrap();
    assert_eq!(all[..2], ["workload waiting", "juju-unit allocating"]);
    let only = read(of("tiny/0", StatusHistoryType::Only(StatusKind::JujuUnit))).await.unwrap();
    assert!(!only.is_empty() && only.iter().all(|line| line.starts_with("juju-unit ")), "{only:?}");
    let newest =
        read(StatusHistoryQuery { tail: Some(1), ..of("tiny/0", StatusHistoryType::Unit) }).await.unwrap();
    assert_eq!(newest, all[all.len() - 1..]);
    let later = fixture.clock.now().checked_add(Duration::from_secs(1)).unwrap();
    let none = read(StatusHistoryQuery { since: Some(later), ..of("tiny/0", StatusHistoryType::Unit) }).await;
    assert_eq!(none.unwrap(), [""; 0]);
    let machine = read(of("0", StatusHistoryType::Only(StatusKind::Machine))).await.unwrap();
    assert_eq!(machine[0], "machine started");
    let application = read(of("tiny", StatusHistoryType::Only(StatusKind::Application))).await.unwrap();
    assert_eq!(application, [""; 0], "its leader said nothing");
    assert_eq!(code_of(read(of("tiny/7", StatusHistoryType::Unit)).await), ErrorCode::NotFound);
    assert_eq!(code_of(read(of("tiny", StatusHistoryType::Unit)).await), ErrorCode::BadRequest);
    fixture.stop().await;
}

/// The size for a model is divided evenly, and the newest entry always stays.
#[tokio::test]
async fn a_history_is_pruned_by_age_and_by_size_as_the_model_says() {
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let model = fixture.add_model("m").await;
    let set = [("max-status-history-size", "1M"), ("max-status-history-age", "2h")];
    let set = set.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    model.command(Command::SetModelConfig { set, reset: vec![] }).await.unwrap();
    let (now, uuid) = (fixture.clock.now(), model.uuid);
    fixture.stop().await;

    let at = |seconds: i64| Timestamp::from_second(now.as_second() + seconds).unwrap();
    let name = |unit: &str| key::record_prefix(&uuid, RecordKind::Status, unit);
    let row =
        |unit: &str, seconds, bytes| NewRecord { prefix: name(unit), at: at(seconds), body: vec![0; bytes] };
    // Each gets half a MiB: sixteen rows of 32 KiB of one, and all of the other that are young enough.
    let mut records: Vec<_> = (0..40).map(|second| row("big/0", second, 32 << 10)).collect();
    records.extend([row("small/0", -3 * 3600, 10), row("small/0", -3600, 10)]);
    let expected = memory.load().await.unwrap().revision;
    memory.commit(Batch { expected, records, ..Batch::default() }).await.unwrap();

    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let left = async |unit: &str| {
        let order = Order::OldestFirst { after: None };
        let records = memory.records(&name(unit), order, 9_999).await.unwrap();
        records.into_iter().map(|record| record.at).collect::<Vec<_>>()
    };
    let pruned = async {
        while left("big/0").await.len() > 16 || left("small/0").await.len() > 1 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, pruned).await.unwrap();
    assert_eq!(left("small/0").await, [at(-3600)]);
    assert_eq!(left("big/0").await, (24..40).map(at).collect::<Vec<_>>());
    fixture.stop().await;
}

/// The controller that takes over from one that stops waits for its end. A round over all sequences is not waited for.
#[tokio::test]
async fn a_controller_that_stops_prunes_no_further_sequence() {
    const SEQUENCES: usize = 2_000;
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let (model, now) = (fixture.add_model("m").await.uuid, fixture.clock.now());
    fixture.stop().await;
    let row = |number: usize| NewRecord {
        prefix: key::record_prefix(&model, RecordKind::Status, &format!("app/{number}")),
        at: now,
        body: vec![0],
    };
    let (expected, records) = (memory.load().await.unwrap().revision, (0..SEQUENCES).map(row).collect());
    memory.commit(Batch { expected, records, ..Batch::default() }).await.unwrap();

    let (blobs, writes) = (tempfile::tempdir().unwrap(), Writes::default());
    let mut options = options(memory, Faults::default(), blobs.path());
    let prune_takes = Duration::from_millis(5);
    options.store = Arc::new(CountedStores { stores: options.store, writes: writes.clone(), prune_takes });
    let (handle, _client, running) = run(options).await;
    let pruned = async {
        while writes.take().prunes == 0 {
            tokio::time::sleep(prune_takes).await;
        }
    };
    tokio::time::timeout(TIMEOUT, pruned).await.unwrap();
    handle.shutdown();
    tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap();
    let after = writes.take().prunes;
    assert!(after < SEQUENCES / 2, "{after} sequences were pruned after the end began");
}
