//! The stores of the controllers after the rounds: each is the fold of the log (H1).

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use periapt_host_api::StoreId;
use periapt_log::LogHead;
use periapt_log_etcd::EtcdLog;
use periapt_store::{LoadedState, Store as _};
use periapt_store_rocksdb::RocksStore;
use periapt_tests::Installation;
use uuid::Uuid;

use crate::{
    log::{done, options},
    site::{HOSTS, Site},
    witness::Witness,
};

/// Stops all controllers, and compares all entities and the note of each store with the fold of the log at the store's
/// position. Returns the number of entities at the last of these positions.
pub(crate) fn check_stores(site: &Site, witness: &mut Witness) -> anyhow::Result<usize> {
    for host in &site.hosts {
        host.ok(["controller", "stop", "local"])?;
    }
    done(async {
        let mut states = Vec::new();
        for (name, host) in HOSTS.into_iter().zip(&site.hosts) {
            states.push((name, loaded(host).await.with_context(|| format!("the store of {name}"))?));
        }
        // One that ends later may have applied more.
        states.sort_by_key(|(_, state)| state.revision);
        let log = EtcdLog::open_present(&options(site.etcd.url())).await?;
        for (name, state) in &states {
            witness.read_to(&log, state.revision).await?;
            check_fold(state, &witness.head, &witness.entities)
                .with_context(|| format!("H1: the store of {name} is not the fold of the log"))?;
        }
        Ok(witness.entities.len())
    })
}

/// Reads the store of a host's controller, which does not run.
async fn loaded(host: &Installation) -> anyhow::Result<LoadedState> {
    let directory = host.path().join("data/controllers/local/controller/store");
    ensure!(directory.join("CURRENT").exists(), "there is no store in {}", directory.display());
    let store = RocksStore::open(&directory, StoreId(Uuid::nil())).await?;
    Ok(store.load().await?.whole().await?)
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
