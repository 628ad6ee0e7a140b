//! The wiring of the background workers, in a controller that serves.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_blobs::Blobs;
use periapt_client::{Client, Identity, Options as ClientOptions};
use periapt_helper::Program;
use periapt_host_api::{StoreId, command::ControllerCommand, member::LogPlace};
use periapt_log::MemoryLog;
use periapt_store::{MemoryStore, Store, StoreError};
use periapt_transport::{MemoryAddress, MemoryNetwork};
use tempfile::TempDir;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::{
    Listen, LogBounds, OpenStore, Options, ReplicationOptions, SealKey, Service, SystemClock,
    SystemRandomSource, supervision::Worker,
};

const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

/// The workers of one of several controllers, as operators are told of them.
const WORKERS: [&str; 8] = ["agents", "audit", "level", "work", "migrations", "copies", "sync", "pruning"];

struct InMemory(Arc<MemoryStore>);

impl OpenStore for InMemory {
    fn open(&self, _: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async { Ok(Arc::clone(&self.0) as Arc<dyn Store>) }.boxed()
    }
}

/// Builds one of several controllers, which is the only one that runs, and a client for it.
async fn built(blobs: &TempDir) -> (Service, Client) {
    let network = MemoryNetwork::default();
    let address = SocketAddr::from(([127, 0, 0, 1], 17_071));
    let options = Options {
        name: "home".into(),
        listen: Listen::Memory(MemoryAddress { caller: network.caller("one"), address }),
        engine: "wasmtime 48".into(),
        store: Arc::new(InMemory(Arc::new(MemoryStore::new(LOG)))),
        blobs: Blobs::local(blobs.path()).unwrap(),
        check_helper: Program { path: "/nowhere".into(), arguments: Vec::new(), environment: Vec::new() },
        seal: SealKey::new(&[5; 32]).unwrap(),
        replication: Some(ReplicationOptions {
            log: Arc::new(MemoryLog::new(LOG).member()),
            member: "one".into(),
            blobs: None,
            place: LogPlace { url: "memory:".into(), authority: None, identity: None },
            bounds: LogBounds::default(),
        }),
        oidc: None,
        programs: None,
        directory: None,
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(SystemRandomSource),
        drain_within: Duration::from_secs(5),
        stall_within: Duration::from_secs(120),
        upload_progress_within: Duration::from_secs(10),
    };
    let client = ClientOptions::in_memory(network.caller("client"), &[address], Identity::Local)
        .with_retry_timeout(Duration::from_secs(30))
        .with_busy_retry_timeout(Duration::from_secs(30));
    (options.build().await.unwrap(), Client::new(client).unwrap())
}

#[tokio::test(start_paused = true)]
async fn each_worker_that_fails_is_started_again_later_and_later_is_told_and_keeps_no_other() {
    assert_eq!(Worker::ALL.map(Worker::name), WORKERS);
    for failing in Worker::ALL {
        let name = failing.name();
        let blobs = TempDir::new().unwrap();
        let (service, client) = built(&blobs).await;
        let sabotage = service.state.statuses.workers.sabotage.clone();
        sabotage.set(Some(failing));
        let handle = service.handle();
        let running = tokio::spawn(service.run(CancellationToken::new()));
        let starts = |worker| sabotage.starts(worker);

        while starts(failing).len() < 4 {
            assert!(!running.is_finished(), "{name} ended the controller");
            sleep(Duration::from_millis(100)).await;
        }
        let times = starts(failing);
        let pauses: Vec<_> = times.windows(2).map(|two| two[1] - two[0]).collect();
        // Of each pause up to one half is left out.
        for (pause, at_least) in pauses.iter().zip([500, 1_000, 2_000].map(Duration::from_millis)) {
            assert!((at_least..at_least * 3).contains(pause), "{name} starts after {pauses:?}");
        }
        client.controller_command(ControllerCommand::add_model("m".parse().unwrap())).await.unwrap();
        let told = client.controller().await.unwrap().failing_workers;
        let [told] = <[_; 1]>::try_from(told).unwrap_or_else(|told| panic!("{name}: {told:?}"));
        assert_eq!(told.name, name);
        assert!(told.failures >= 3 && told.message.contains("sabotage"), "{told:?}");
        for other in Worker::ALL.into_iter().filter(|other| *other != failing) {
            assert_eq!(starts(other).len(), 1, "{} while {name} fails", other.name());
        }

        sabotage.set(None);
        let so_far = starts(failing).len();
        while starts(failing).len() == so_far {
            sleep(Duration::from_millis(100)).await;
        }
        sleep(Duration::from_secs(130)).await;
        assert_eq!(starts(failing).len(), so_far + 1, "{name} works");
        assert!(client.controller().await.unwrap().failing_workers.is_empty(), "{name} is well again");
        handle.shutdown();
        running.await.unwrap().unwrap();
    }
}
