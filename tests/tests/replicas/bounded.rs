//! A log in real servers of etcd that has no room for all its entries: who was away comes back by the state of the
//! controller that leads, and waits for it where no other disk has what was trimmed.

use std::{
    collections::BTreeSet,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use anyhow::{Context as _, ensure};
use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_client::{Client, Identity};
use periapt_controller::{
    Handle, Listen, LogBounds, OpenStore, Options, ReplicationOptions, RunError, SealKey,
};
use periapt_host_api::{
    LEVEL, Revision, StoreId,
    command::{ControllerCommand, MemberRole},
    member::LogPlace,
};
use periapt_log::{Log as _, LogError};
use periapt_log_etcd::{EtcdLog, testing::TestEtcd};
use periapt_store::{LoadedState, Store, StoreError};
use periapt_store_rocksdb::RocksStore;
use periapt_tests::{POLL_INTERVAL, check_helper};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::{log::options, site::UNTIL};

/// The bounds of the log: some ten commands fill it.
const BOUNDS: LogBounds = LogBounds { kept: 4 << 10, most: 16 << 10 };

/// The time in which a controller does not serve that has no source of its state. It looks for one for 5 s at a time.
const WAITS: Duration = Duration::from_secs(8);

/// The store of a controller, which the test reads beside it.
#[derive(Clone)]
struct WatchedStore {
    directory: PathBuf,
    /// The open store. The controller alone keeps it open.
    open: Arc<Mutex<Option<Weak<dyn Store>>>>,
}

impl OpenStore for WatchedStore {
    fn open(&self, fresh: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async move {
            let store: Arc<dyn Store> = Arc::new(RocksStore::open(&self.directory, fresh).await?);
            *self.open.lock() = Some(Arc::downgrade(&store));
            Ok(store)
        }
        .boxed()
    }
}

/// A controller that runs.
struct Running {
    handle: Handle,
    client: Client,
    store: WatchedStore,
    task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    async fn stop(self) -> anyhow::Result<()> {
        self.handle.shutdown();
        Ok(self.task.await??)
    }

    /// Waits until the controller answers requests.
    async fn serves(&mut self) -> anyhow::Result<()> {
        ensure!(tokio::time::timeout(UNTIL, self.handle.serving()).await?, "the controller ended");
        Ok(())
    }

    /// Adds a model.
    async fn add(&self, name: &str) -> anyhow::Result<()> {
        self.client.controller_command(ControllerCommand::add_model(name.parse()?)).await?;
        Ok(())
    }

    async fn state(&self) -> anyhow::Result<LoadedState> {
        let open = self.store.open.lock().as_ref().and_then(Weak::upgrade);
        Ok(open.context("the store is open")?.load().await?.whole().await?)
    }
}

/// The controllers' log, and their directories.
struct Bounded {
    etcd: TestEtcd,
    place: TempDir,
    log: EtcdLog,
    /// The names of the models that were added.
    models: Vec<String>,
}

impl Bounded {
    async fn new(etcd: TestEtcd) -> anyhow::Result<Self> {
        let log = EtcdLog::open(&options(etcd.url())).await?;
        Ok(Self { etcd, place: TempDir::new()?, log, models: Vec::new() })
    }

    /// Starts a controller, in the directory of its name.
    async fn start(&self, name: &str) -> anyhow::Result<Running> {
        let directory = self.place.path().join(name);
        let log = Arc::new(EtcdLog::open(&options(self.etcd.url())).await?);
        let place = LogPlace { url: self.etcd.url().to_string(), authority: None, identity: None };
        let replication = ReplicationOptions {
            log,
            member: name.to_owned(),
            place,
            blobs: None,
            bounds: BOUNDS,
            level: LEVEL,
            observer: None,
        };
        let store = WatchedStore { directory: directory.join("store"), open: Arc::default() };
        let listen = Listen::InProcess("127.0.0.1:0".parse()?);
        let options = Options {
            store: Arc::new(store.clone()),
            seal: SealKey::new(&[5; 32])?,
            replication: Some(replication),
            directory: None,
            ..Options::in_directory("home", &directory, listen, "engine", check_helper()?)?
        };
        let service = options.build().await?;
        let handle = service.handle();
        let task = tokio::spawn(service.run(CancellationToken::new()));
        let options = periapt_client::Options::new(handle.url(), Identity::Local)
            .with_busy_retry_timeout(UNTIL)
            .with_unanswered_retry_timeout(UNTIL);
        Ok(Running { handle, client: Client::new(options)?, store, task })
    }

    /// Adds models until the log has lost the entry after a position.
    async fn fill(&mut self, by: &Running, position: Revision) -> anyhow::Result<()> {
        let filled = async {
            loop {
                match self.log.read(position, 1).await {
                    Err(LogError::Trimmed(_)) => return anyhow::Ok(()),
                    Err(error) if !error.is_temporary() => return Err(error.into()),
                    _ => {}
                }
                let name = format!("m{}", self.models.len());
                by.add(&name).await?;
                self.models.push(name);
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(UNTIL, filled).await.context("the log was not trimmed")?
    }

    /// Waits until these controllers have the same state, with all models.
    async fn same(&self, all: &[&Running]) -> anyhow::Result<()> {
        let same = async {
            loop {
                let mut states = Vec::new();
                for running in all {
                    states.push(running.state().await?);
                }
                let first = states.first().context("a controller")?;
                if states.iter().all(|state| state.revision == first.revision) {
                    ensure!(
                        states.iter().all(|state| state == first),
                        "other entities at {}",
                        first.revision
                    );
                    return anyhow::Ok(());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::time::timeout(UNTIL, same).await.context("the controllers did not reach one position")??;
        let expected: BTreeSet<_> = self.models.iter().cloned().collect();
        for running in all {
            // Its disk has the state a moment before it is shown.
            let shows = async {
                loop {
                    let shown =
                        running.client.models().await?.into_iter().map(|model| model.name.to_string());
                    if shown.collect::<BTreeSet<_>>() == expected {
                        return anyhow::Ok(());
                    }
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            tokio::time::timeout(UNTIL, shows)
                .await
                .with_context(|| format!("not shown: {expected:?}"))??;
        }
        Ok(())
    }
}

/// Waits until the first controller leads, as it tells.
async fn leads(first: &Running) -> anyhow::Result<()> {
    let leads = async {
        loop {
            let members = first.client.controller().await?.members;
            if members.iter().any(|member| member.name == "one" && member.role == MemberRole::Leader) {
                return anyhow::Ok(());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(UNTIL, leads).await.context("the first controller does not lead")?
}

#[test]
fn who_was_away_until_the_log_had_no_room_comes_back_by_the_leaders_state_and_waits_where_none_leads()
-> anyhow::Result<()> {
    let etcd = TestEtcd::start(3);
    etcd.ready();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let mut set = Bounded::new(etcd).await?;
        let mut one = set.start("one").await?;
        one.serves().await?;
        leads(&one).await?;
        let (mut two, mut three) = (set.start("two").await?, set.start("three").await?);
        two.serves().await?;
        three.serves().await?;
        set.same(&[&one, &two, &three]).await?;

        // One of three is away.
        let had = three.state().await?.revision;
        three.stop().await?;
        set.fill(&one, had).await?;
        let mut three = set.start("three").await?;
        three.serves().await?;
        set.same(&[&one, &two, &three]).await?;

        // All others are away: what was trimmed is on one disk.
        let had = two.state().await?.revision.max(three.state().await?.revision);
        two.stop().await?;
        three.stop().await?;
        set.fill(&one, had).await?;
        one.stop().await?;
        let (mut two, mut three) = (set.start("two").await?, set.start("three").await?);
        let serve = tokio::join!(
            tokio::time::timeout(WAITS, two.handle.serving()),
            tokio::time::timeout(WAITS, three.handle.serving()),
        );
        ensure!(matches!(serve, (Err(_), Err(_))), "what was acknowledged is not shown: {serve:?}");
        let mut one = set.start("one").await?;
        one.serves().await?;
        two.serves().await?;
        three.serves().await?;
        two.add("last").await?;
        set.models.push("last".to_owned());
        set.same(&[&one, &two, &three]).await?;
        for running in [one, two, three] {
            running.stop().await?;
        }
        anyhow::Ok(())
    })
}
