//! Several controllers of one log, in one process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use periapt_blobs::{Blobs, SharedStore};
use periapt_client::{Client, Identity};
use periapt_controller::{Handle, LogBounds, Options, ReplicationOptions, RunError};
use periapt_host_api::{
    AgentName, LEVEL, ModelName, Revision, StoreId,
    command::{Answer, ControllerCommand, MemberInfo, MemberRole},
    member::LogPlace,
};
use periapt_log::{Content, Entry, LogHead, MemoryLog, MemoryLogMember};
use periapt_store::{LoadedState, MemoryStore, Store as _};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::fixture::{self, Agent, Faults, ManualClock, TIMEOUT};

/// The log.
pub(crate) const LOG: StoreId = StoreId(uuid::Uuid::from_u128(70));

/// The controllers of one log.
pub(crate) struct Set {
    pub(crate) log: MemoryLog,
    /// The blobs of each controller, or its cache of shared ones, in a directory of its name.
    blobs: Arc<TempDir>,
    /// The object store that has the blobs.
    shared: Option<SharedStore>,
    pub(crate) clock: ManualClock,
    bounds: LogBounds,
}

/// One controller.
pub(crate) struct Member {
    pub(crate) access: MemoryLogMember,
    pub(crate) memory: Arc<MemoryStore>,
    pub(crate) handle: Handle,
    pub(crate) client: Client,
    pub(crate) running: JoinHandle<Result<(), RunError>>,
}

fn place() -> LogPlace {
    LogPlace { url: "memory:".into(), authority: None, identity: None }
}

impl Set {
    pub(crate) fn new() -> Self {
        Self::bounded(LogBounds::default())
    }

    /// Returns a set of controllers that keep so many bytes of entries.
    pub(crate) fn bounded(bounds: LogBounds) -> Self {
        let (log, blobs) = (MemoryLog::new(LOG), Arc::new(TempDir::new().unwrap()));
        Self { log, blobs, shared: None, clock: ManualClock::default(), bounds }
    }

    /// Returns a set of controllers that keep blobs in an object store.
    pub(crate) fn sharing(shared: SharedStore) -> Self {
        Self { shared: Some(shared), ..Self::new() }
    }

    /// Returns controllers of the same log that keep blobs elsewhere.
    pub(crate) fn beside(&self, shared: Option<SharedStore>) -> Self {
        let (log, blobs, clock) = (self.log.clone(), Arc::clone(&self.blobs), self.clock.clone());
        Self { log, blobs, shared, clock, bounds: self.bounds }
    }

    pub(crate) fn replication(&self, name: &str, access: &MemoryLogMember) -> ReplicationOptions {
        ReplicationOptions {
            log: Arc::new(access.clone()),
            member: name.into(),
            place: place(),
            blobs: None,
            bounds: self.bounds,
            level: LEVEL,
            observer: None,
        }
    }

    pub(crate) fn options(&self, name: &str, memory: Arc<MemoryStore>, access: &MemoryLogMember) -> Options {
        let local = fixture::options(memory, Faults::default(), &self.blobs(name));
        let blobs = self.shared.as_ref().map(|shared| Blobs::in_shared(shared, &self.blobs(name)).unwrap());
        Options {
            replication: Some(self.replication(name, access)),
            clock: Arc::new(self.clock.clone()),
            blobs: blobs.unwrap_or_else(|| local.blobs.clone()),
            ..local
        }
    }

    /// Returns the directory of a controller's blobs.
    pub(crate) fn blobs(&self, name: &str) -> PathBuf {
        self.blobs.path().join(name)
    }

    pub(crate) async fn start(&self, name: &str) -> Member {
        self.start_on(name, Arc::new(MemoryStore::new(LOG))).await
    }

    pub(crate) async fn start_on(&self, name: &str, memory: Arc<MemoryStore>) -> Member {
        let access = self.log.member();
        let options = self.options(name, Arc::clone(&memory), &access);
        let (mut handle, _, running) = fixture::run(options).await;
        assert!(tokio::time::timeout(TIMEOUT, handle.serving()).await.unwrap());
        let options = periapt_client::Options::new(handle.url(), Identity::Local)
            .with_busy_retry_timeout(Duration::from_secs(30));
        Member { access, memory, client: Client::new(options).unwrap(), handle, running }
    }

    /// Returns the bytes of all entries of the log.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log.entries().iter().map(|entry| entry.bytes.len() as u64).sum()
    }

    /// Returns the number of entries of the log.
    pub(crate) fn entries(&self) -> usize {
        self.log.entries().len()
    }

    /// Starts a controller with a clock of its own, and returns the error with which it ends.
    pub(crate) async fn ends(&self, name: &str, clock: ManualClock) -> String {
        let options = Options {
            clock: Arc::new(clock),
            ..self.options(name, Arc::new(MemoryStore::new(LOG)), &self.log.member())
        };
        let (_, _, running) = fixture::run(options).await;
        tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err().to_string()
    }

    /// Waits until each of these controllers has applied the whole log and shows it, and returns their states.
    pub(crate) async fn settled(&self, members: &[&Member]) -> Vec<LoadedState> {
        let mut states = Vec::new();
        for member in members {
            loop {
                let state = member.memory.load().await.unwrap().whole().await.unwrap();
                if Some(state.revision) == self.log.entries().last().map(|entry| entry.position) {
                    member.shows(state.revision).await;
                    states.push(state);
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        states
    }

    /// Folds the log, and returns the state that it leads to.
    pub(crate) fn fold(&self) -> (Revision, std::collections::BTreeMap<Vec<u8>, Vec<u8>>) {
        let (mut head, mut entities) = (LogHead::empty(LOG), std::collections::BTreeMap::new());
        for stored in self.log.entries() {
            let entry = Entry::decode(stored.position, &stored.bytes).unwrap();
            head = head.after(stored.position, &entry, &stored.bytes).unwrap();
            if let Content::Batch { entities: written, .. } = entry.content {
                for (key, value) in written {
                    match value {
                        Some(value) => entities.insert(key, value),
                        None => entities.remove(&key),
                    };
                }
            }
        }
        (head.position, entities)
    }
}

impl Member {
    pub(crate) async fn stop(self) {
        self.handle.shutdown();
        tokio::time::timeout(TIMEOUT, self.running).await.unwrap().unwrap().unwrap();
    }

    /// Returns the controller's URL.
    pub(crate) fn url(&self) -> String {
        self.handle.url()
    }

    /// Cuts the controller off from the log.
    pub(crate) fn cut_off(&self) {
        self.access.cut_off();
    }

    pub(crate) fn reconnect(&self) {
        self.access.reconnect();
    }

    /// Returns an agent that is connected to this controller alone.
    pub(crate) fn as_agent(&self, name: &str) -> Agent {
        let name = AgentName::new(name).unwrap();
        let options = periapt_client::Options::new(self.handle.url(), Identity::Agent(name.clone()));
        Agent { name, client: Client::new(options).unwrap() }
    }

    /// Returns a client of this controller that is another controller.
    pub(crate) fn as_controller(&self) -> Client {
        Client::new(periapt_client::Options::new(self.handle.url(), Identity::Controller)).unwrap()
    }

    pub(crate) async fn add_model(&self, name: &str) -> Result<Answer, periapt_client::ClientError> {
        self.client.controller_command(ControllerCommand::add_model(ModelName::new(name).unwrap())).await
    }

    pub(crate) async fn models(&self) -> Vec<String> {
        let models = self.client.models().await.unwrap();
        let mut names: Vec<_> = models.into_iter().map(|model| model.name.to_string()).collect();
        names.sort();
        names
    }

    /// Returns the number of models that were added, as the audit log tells it.
    pub(crate) async fn added(&self) -> usize {
        let entries = self.client.audit(None).await.unwrap().entries;
        entries.iter().filter(|entry| entry.request.act == "add-model").count()
    }

    /// Waits until the controller shows this revision: its disk has it before.
    async fn shows(&self, revision: Revision) {
        while self.client.controller().await.unwrap().revision < revision {
            tokio::task::yield_now().await;
        }
    }

    /// Waits until the controller leads.
    pub(crate) async fn leads(&self, name: &str) {
        let leads = |member: &MemberInfo| member.name == name && member.role == MemberRole::Leader;
        while !self.client.controller().await.unwrap().members.iter().any(leads) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
