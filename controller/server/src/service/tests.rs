//! The wiring of the background workers, in a controller that serves.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use periapt_blobs::Blobs;
use periapt_client::{Client, Identity, Options as ClientOptions};
use periapt_helper::Program;
use periapt_host_api::{LEVEL, StoreId, command::ControllerCommand, member::LogPlace};
use periapt_log::MemoryLog;
use periapt_store::{MemoryStore, Store, StoreError};
use periapt_transport::{MemoryAddress, MemoryNetwork};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    Listen, LogBounds, OpenStore, Options, ReplicationOptions, SealKey, Service, SystemClock,
    SystemRandomSource, supervision::Worker,
};

const LOG: StoreId = StoreId(uuid::Uuid::from_u128(1));

/// The workers of one of several controllers, as operators are told of them.
const WORKERS: [&str; 9] =
    ["agents", "audit", "level", "work", "migrations", "copies", "sync", "trimming", "pruning"];

struct InMemory(Arc<MemoryStore>);

impl OpenStore for InMemory {
    fn open(&self, _: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async { Ok(Arc::clone(&self.0) as Arc<dyn Store>) }.boxed()
    }
}

/// The log and the network of several controllers.
struct Surroundings {
    log: MemoryLog,
    network: MemoryNetwork,
    blobs: TempDir,
}

impl Surroundings {
    fn new() -> Self {
        let (log, blobs) = (MemoryLog::new(LOG), TempDir::new().unwrap());
        Self { log, network: MemoryNetwork::default(), blobs }
    }

    /// Builds one of several controllers, and a client for it.
    async fn built(&self, name: &'static str, port: u16) -> (Service, Client) {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let options = Options {
            name: "home".into(),
            listen: Listen::Memory(MemoryAddress { caller: self.network.caller(name), address }),
            engine: "wasmtime 48".into(),
            store: Arc::new(InMemory(Arc::new(MemoryStore::new(LOG)))),
            blobs: Blobs::local(&self.blobs.path().join(name)).unwrap(),
            check_helper: Program { path: "/nowhere".into(), arguments: Vec::new(), environment: Vec::new() },
            seal: SealKey::new(&[5; 32]).unwrap(),
            replication: Some(ReplicationOptions {
                log: Arc::new(self.log.member()),
                member: name.into(),
                blobs: None,
                place: LogPlace { url: "memory:".into(), authority: None, identity: None },
                bounds: LogBounds::default(),
                level: LEVEL,
                observer: None,
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
        let client = ClientOptions::in_memory(self.network.caller("client"), &[address], Identity::Local)
            .with_retry_timeout(Duration::from_secs(30))
            .with_busy_retry_timeout(Duration::from_secs(30));
        (options.build().await.unwrap(), Client::new(client).unwrap())
    }
}

#[tokio::test(start_paused = true)]
async fn each_worker_that_fails_is_started_again_later_and_later_is_told_and_keeps_no_other() {
    assert_eq!(Worker::ALL.map(Worker::name), WORKERS);
    for failing in Worker::ALL {
        let name = failing.name();
        let surroundings = Surroundings::new();
        let (service, client) = surroundings.built("one", 17_071).await;
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

/// Waits until a controller names these failing workers, each with its controller, and a model's status names them, too.
async fn names_failing(client: &Client, expected: &[(&str, &str)]) {
    loop {
        let members = client.controller().await.unwrap().members;
        let failing = members.iter().flat_map(|member| {
            member.failing_workers.iter().map(|worker| (member.name.as_str(), worker.name.as_str()))
        });
        let status = client.status(&"m".parse().unwrap()).await.unwrap().controller;
        let is_told = |(member, worker): &(&str, &str)| {
            let begin = format!("worker {worker} of controller {member} failed ");
            status.problems.iter().any(|line| line.starts_with(&begin) && line.contains("sabotage"))
        };
        if failing.eq(expected.iter().copied())
            && expected.iter().all(is_told)
            && status.problems.len() == expected.len()
        {
            return;
        }
        sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_controller_tells_of_the_failing_workers_of_all() {
    const WITHIN: Duration = Duration::from_secs(600);
    let surroundings = Surroundings::new();
    let (one, of_one) = surroundings.built("one", 17_071).await;
    let broken_in_one = one.state.statuses.workers.sabotage.clone();
    broken_in_one.set(Some(Worker::Work));
    let (first, one) = (one.handle(), tokio::spawn(one.run(CancellationToken::new())));
    of_one.controller_command(ControllerCommand::add_model("m".parse().unwrap())).await.unwrap();
    let (two, of_two) = surroundings.built("two", 17_072).await;
    let broken_in_two = two.state.statuses.workers.sabotage.clone();
    broken_in_two.set(Some(Worker::Pruning));
    let (second, two) = (two.handle(), tokio::spawn(two.run(CancellationToken::new())));

    for client in [&of_one, &of_two] {
        let told = names_failing(client, &[("one", "work"), ("two", "pruning")]);
        timeout(WITHIN, told).await.unwrap();
    }
    broken_in_two.set(None);
    for client in [&of_one, &of_two] {
        timeout(WITHIN, names_failing(client, &[("one", "work")])).await.unwrap();
    }

    // What a controller that is gone said of its workers does not stay.
    first.shutdown();
    one.await.unwrap().unwrap();
    timeout(WITHIN, names_failing(&of_two, &[])).await.unwrap();
    second.shutdown();
    two.await.unwrap().unwrap();
}
