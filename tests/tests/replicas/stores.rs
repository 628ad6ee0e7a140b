//! The stores of the controllers after the rounds: each is the fold of the log (H1).

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};
use periapt_host_api::{Revision, StoreId};
use periapt_log::LogHead;
use periapt_log_etcd::EtcdLog;
use periapt_store::{LoadedState, Order, Record, Store as _, key};
use periapt_store_rocksdb::RocksStore;
use periapt_tests::Installation;
use uuid::Uuid;

use crate::{
    log::{done, options},
    site::{HOSTS, Site},
    witness::Witness,
};

/// The number of records of the audit log that are read at a time.
const PAGE: usize = 1_000;

/// The records of the audit log of which a controller prunes none. It keeps the newest 100,000, and 64 MiB.
const NOT_PRUNED: usize = 50_000;

/// The content of a store.
struct Stored {
    state: LoadedState,
    /// The records of the audit log, the oldest first.
    audit: Vec<Record>,
}

/// Stops all controllers, and compares all entities, the note and the audit log of each store with the fold of the log at
/// the store's position. The fold is at the last of these positions then.
pub(crate) fn check_stores(site: &Site, witness: &mut Witness) -> anyhow::Result<()> {
    for host in &site.hosts {
        host.ok(["controller", "stop", "local"])?;
    }
    done(async {
        let mut stores = Vec::new();
        for (name, host) in HOSTS.into_iter().zip(&site.hosts) {
            stores.push((name, read(host).await.with_context(|| format!("the store of {name}"))?));
        }
        // One that ends later may have applied more.
        stores.sort_by_key(|(_, stored)| stored.state.revision);
        let log = EtcdLog::open_present(&options(site.etcd.url())).await?;
        for (name, Stored { state, audit }) in &stores {
            witness.read_to(&log, state.revision).await?;
            check_fold(state, &witness.head, &witness.entities)
                .and_then(|()| check_audit(audit, state.revision, &witness.audit))
                .with_context(|| format!("H1: the store of {name} is not the fold of the log"))?;
        }
        ensure!(!witness.audit.is_empty(), "the requests of clients are in the audit log");
        Ok(())
    })
}

/// Reads the store of a host's controller, which does not run.
async fn read(host: &Installation) -> anyhow::Result<Stored> {
    let directory = host.path().join("data/controllers/local/controller/store");
    ensure!(directory.join("CURRENT").exists(), "there is no store in {}", directory.display());
    let store = RocksStore::open(&directory, StoreId(Uuid::nil())).await?;
    let state = store.load().await?.whole().await?;
    let mut audit: Vec<Record> = Vec::new();
    loop {
        let after = audit.last().map(|record| record.position);
        let records = store.records(key::AUDIT, Order::OldestFirst { after }, PAGE).await?;
        if records.is_empty() {
            return Ok(Stored { state, audit });
        }
        audit.extend(records);
    }
}

/// Checks that a store which is at a position has the records that the audit log has up to there, from the store's oldest
/// one on. It may have newer ones beside them, from a snapshot.
fn check_audit(stored: &[Record], revision: Revision, log: &[Record]) -> anyhow::Result<()> {
    let stored: Vec<_> = stored.iter().take_while(|record| record.position.revision <= revision).collect();
    ensure!(
        stored.len() >= log.len().min(NOT_PRUNED),
        "it has {} records of the audit log at {revision}, and the log has {}",
        stored.len(),
        log.len()
    );
    let oldest = stored.first().map(|record| record.position);
    let kept: Vec<_> =
        log.iter().skip_while(|record| oldest.is_some_and(|at| record.position < at)).collect();
    if let Some((found, expected)) = stored.iter().zip(&kept).find(|(found, expected)| found != expected) {
        bail!("its audit log has {}, and the log has {}", shown(found), shown(expected));
    }
    ensure!(
        stored.len() == kept.len(),
        "its audit log has {} records from {oldest:?} on, and the log has {}",
        stored.len(),
        kept.len()
    );
    Ok(())
}

fn shown(Record { position, at, body }: &Record) -> String {
    format!("{} of {at} at {position:?}", String::from_utf8_lossy(body))
}

/// Checks that a store has the entities of a fold of the log, and its head as the note.
fn check_fold(
    state: &LoadedState,
    head: &LogHead,
    entities: &BTreeMap<Vec<u8>, Vec<u8>>,
) -> anyhow::Result<()> {
    ensure!(state.revision == head.position, "it is at {}, not {}", state.revision, head.position);
    let note = state.note.as_deref().context("it has no note")?;
    ensure!(
        note == head.encode(),
        "its note at {} is {:?}, not {head:?}",
        head.position,
        LogHead::decode(note)
    );
    let stored: BTreeMap<_, _> = state.entities.iter().map(|(key, value)| (key, value)).collect();
    for (key, value) in entities {
        let shown = String::from_utf8_lossy(key);
        let found = stored.get(key).with_context(|| format!("it has no {shown} at {}", head.position))?;
        ensure!(*found == value, "it has another {shown} at {}", head.position);
    }
    let more = stored.keys().find(|key| !entities.contains_key(**key));
    let more = more.map(|key| String::from_utf8_lossy(key));
    ensure!(more.is_none(), "it has {more:?} at {}, and the log has not", head.position);
    ensure!(stored.len() == state.entities.len(), "it has a key twice");
    Ok(())
}

#[test]
fn a_store_that_lacks_an_entity_or_has_another_one_or_another_head_is_found() {
    use periapt_host_api::{Digest, Revision};

    let head = LogHead { position: Revision(3), ..LogHead::empty(StoreId(Uuid::nil())) };
    let entity = |key: &str, value: &str| (key.as_bytes().to_vec(), value.as_bytes().to_vec());
    let fold = BTreeMap::from([entity("a", "1"), entity("b", "2")]);
    let store = |entities: Vec<_>| LoadedState { revision: Revision(3), entities, note: Some(head.encode()) };
    let whole = store(vec![entity("a", "1"), entity("b", "2")]);
    let is_fold = |state: &LoadedState| check_fold(state, &head, &fold).is_ok();
    assert!(is_fold(&whole));
    assert!(!is_fold(&store(vec![entity("a", "1")])), "it lacks an entity");
    assert!(!is_fold(&store(vec![entity("a", "1"), entity("b", "3")])), "it has another value");
    assert!(
        !is_fold(&store(vec![entity("a", "1"), entity("b", "2"), entity("c", "3")])),
        "it has one that the log has not"
    );
    let other = LogHead { digest: Digest::of(b"another entry"), ..head.clone() };
    assert!(
        !is_fold(&LoadedState { note: Some(other.encode()), ..whole.clone() }),
        "it follows another entry"
    );
    assert!(!is_fold(&LoadedState { note: None, ..whole.clone() }), "it has no head");
    assert!(!is_fold(&LoadedState { revision: Revision(4), ..whole }), "it is at another position");
}

#[test]
fn a_store_whose_audit_log_has_a_gap_or_another_record_or_one_too_many_is_found() {
    use periapt_host_api::Timestamp;
    use periapt_store::RecordPosition;

    let record = |revision: u64, index, body: &str| Record {
        position: RecordPosition { revision: Revision(revision), index },
        at: Timestamp::UNIX_EPOCH,
        body: body.as_bytes().to_vec(),
    };
    let [a, b, c, d] = [record(1, 0, "a"), record(1, 2, "b"), record(3, 0, "c"), record(4, 0, "d")];
    let log = [a.clone(), b.clone(), c.clone()];
    let is_of = |stored: &[Record]| check_audit(stored, Revision(3), &log).is_ok();
    assert!(is_of(&log));
    assert!(is_of(&[a.clone(), b.clone(), c.clone(), d.clone()]), "a snapshot has brought the newest one");
    assert!(
        !is_of(&[]) && !is_of(&[b.clone(), c.clone()]),
        "it lacks the oldest ones, and nothing was pruned"
    );
    assert!(!is_of(&[a.clone(), c.clone()]), "it lacks one between others");
    assert!(!is_of(&[a.clone(), b.clone(), d]), "it lacks the newest one");
    let extra = record(2, 0, "e");
    assert!(!is_of(&[a.clone(), b.clone(), extra, c.clone()]), "it has one that the log has not");
    let elsewhere = record(1, 1, "b");
    assert!(!is_of(&[a.clone(), elsewhere, c.clone()]), "one is at another position");
    assert!(!is_of(&[a.clone(), record(1, 2, "f"), c.clone()]), "one has another content");
    let later = Record { at: Timestamp::MAX, ..b.clone() };
    assert!(!is_of(&[a.clone(), later, c.clone()]), "one has another time");

    let long: Vec<_> = (0..2 * NOT_PRUNED as u64).map(|revision| record(revision, 0, "g")).collect();
    let (old, new) = long.split_at(NOT_PRUNED / 2);
    let last = Revision(2 * NOT_PRUNED as u64);
    assert!(check_audit(new, last, &long).is_ok(), "the oldest ones were pruned");
    assert!(check_audit(&[old, &new[1..]].concat(), last, &long).is_err(), "one behind them is lacking");
    assert!(check_audit(&long[NOT_PRUNED + 1..], last, &long).is_err(), "too many were pruned");
}
