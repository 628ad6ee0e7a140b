//! Several controllers of one log, in one process: commands through any of them, leaders that are cut off or end, and
//! the same state everywhere.

use std::{sync::Arc, time::Duration};

use periapt_client::{Client, Identity};
use periapt_controller::{Handle, Options, ReplicationOptions, RunError};
use periapt_host_api::{
    ErrorCode, ModelName, Revision, StoreId,
    command::{Answer, ControllerCommand, MemberInfo, MemberRole},
    member::LogPlace,
};
use periapt_log::{Content, Entry, Log as _, LogHead, MemoryLog, MemoryLogMember};
use periapt_store::{LoadedState, MemoryStore, Store as _};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::fixture::{self, Faults, TIMEOUT};

const LOG: StoreId = StoreId(uuid::Uuid::from_u128(70));

/// The controllers of one log.
struct Set {
    log: MemoryLog,
    blobs: TempDir,
}

/// One controller.
struct Member {
    access: MemoryLogMember,
    memory: Arc<MemoryStore>,
    handle: Handle,
    client: Client,
    running: JoinHandle<Result<(), RunError>>,
}

fn place() -> LogPlace {
    LogPlace { url: "memory:".into(), authority: None, identity: None }
}

impl Set {
    fn new() -> Self {
        Self { log: MemoryLog::new(LOG), blobs: TempDir::new().unwrap() }
    }

    async fn start(&self, name: &str) -> Member {
        self.start_on(name, Arc::new(MemoryStore::new(LOG))).await
    }

    async fn start_on(&self, name: &str, memory: Arc<MemoryStore>) -> Member {
        let access = self.log.member();
        let replication =
            ReplicationOptions { log: Arc::new(access.clone()), member: name.into(), place: place() };
        let options = Options {
            replication: Some(replication),
            ..fixture::options(Arc::clone(&memory), Faults::default(), self.blobs.path())
        };
        let (mut handle, _, running) = fixture::run(options).await;
        assert!(tokio::time::timeout(TIMEOUT, handle.serving()).await.unwrap());
        let options = periapt_client::Options::new(handle.url(), Identity::Local)
            .with_busy_retry_timeout(Duration::from_secs(30));
        Member { access, memory, client: Client::new(options).unwrap(), handle, running }
    }

    /// Waits until each of these controllers has applied the whole log, and returns their states.
    async fn settled(&self, members: &[&Member]) -> Vec<LoadedState> {
        let mut states = Vec::new();
        for member in members {
            loop {
                let state = member.memory.load().await.unwrap();
                if state.revision.0 == self.log.entries().len() as u64 {
                    states.push(state);
                    break;
                }
                tokio::task::yield_now().await;
            }
        }
        states
    }

    /// Folds the log, and returns the state that it leads to.
    fn fold(&self) -> (Revision, std::collections::BTreeMap<Vec<u8>, Vec<u8>>) {
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
    async fn stop(self) {
        self.handle.shutdown();
        tokio::time::timeout(TIMEOUT, self.running).await.unwrap().unwrap().unwrap();
    }

    async fn add_model(&self, name: &str) -> Result<Answer, periapt_client::ClientError> {
        self.client.controller_command(ControllerCommand::add_model(ModelName::new(name).unwrap())).await
    }

    async fn models(&self) -> Vec<String> {
        let models = self.client.models().await.unwrap();
        let mut names: Vec<_> = models.into_iter().map(|model| model.name.to_string()).collect();
        names.sort();
        names
    }

    /// Waits until the controller leads.
    async fn leads(&self, name: &str) {
        let leads = |member: &MemberInfo| member.name == name && member.role == MemberRole::Leader;
        while !self.client.controller().await.unwrap().members.iter().any(leads) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_to_any_controller_is_carried_out_once_and_seen_by_its_sender_at_once() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    for (member, name) in [(&one, "a"), (&two, "b"), (&three, "c")] {
        member.add_model(name).await.unwrap();
        assert!(member.models().await.contains(&name.to_owned()), "{name} was answered");
    }
    let again = two.add_model("a").await.unwrap_err();
    assert_eq!(again.refusal().unwrap().code, ErrorCode::AlreadyExists, "{again}");
    let (revision, entities) = set.fold();
    for state in set.settled(&[&one, &two, &three]).await {
        assert_eq!(state.revision, revision);
        assert_eq!(state.entities, Vec::from_iter(entities.clone()));
        assert!(state.note.is_some());
    }
    for member in [one, two, three] {
        assert_eq!(member.models().await, ["a", "b", "c"]);
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_controller_leads_when_the_leading_one_ends_and_it_comes_back_as_a_follower() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.add_model("a").await.unwrap();
    let memory = Arc::clone(&one.memory);
    one.stop().await;
    two.add_model("b").await.unwrap();
    let one = set.start_on("one", memory).await;
    one.add_model("c").await.unwrap();
    assert_eq!(one.models().await, ["a", "b", "c"]);
    set.settled(&[&one, &two]).await;
    assert_eq!(two.models().await, ["a", "b", "c"]);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leading_controller_that_is_cut_off_from_the_log_answers_nothing_until_it_follows() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    one.add_model("a").await.unwrap();
    one.access.cut_off();
    // The first controller cannot know yet that it is cut off: the command waits for the log.
    let in_doubt = tokio::spawn({
        let client = one.client.clone();
        async move { client.controller_command(ControllerCommand::add_model(ModelName::new("b").unwrap())).await }
    });
    two.leads("two").await;
    two.add_model("c").await.unwrap();
    assert!(!in_doubt.is_finished(), "what is not in the log is not answered");
    one.access.reconnect();
    // It had no effect with the first controller, which passed it on to the second one.
    in_doubt.await.unwrap().unwrap();
    set.settled(&[&one, &two]).await;
    for member in [&one, &two] {
        assert_eq!(member.models().await, ["a", "b", "c"]);
    }
    let terms: Vec<u64> = set
        .log
        .entries()
        .iter()
        .filter_map(|stored| {
            let entry = Entry::decode(stored.position, &stored.bytes).unwrap();
            matches!(entry.content, Content::Term(_)).then_some(entry.term.0)
        })
        .collect();
    assert_eq!(terms, [1, 2], "each leadership begins with an entry");
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn a_store_of_another_log_or_of_none_is_refused_before_anything_is_written() {
    let set = Set::new();
    let refused = async |memory: MemoryStore, replication: Option<ReplicationOptions>| {
        let options = Options {
            replication,
            ..fixture::options(Arc::new(memory), Faults::default(), set.blobs.path())
        };
        options.build().await.err().unwrap().to_string()
    };
    let replication =
        || Some(ReplicationOptions { log: Arc::new(set.log.member()), member: "one".into(), place: place() });
    let other = MemoryStore::new(StoreId(uuid::Uuid::from_u128(71)));
    let error = refused(other, replication()).await;
    assert!(error.contains("is not fed from the log 00000000-0000-0000-0000-000000000046"), "{error}");
    let alone = MemoryStore::new(LOG);
    alone.commit(periapt_store::Batch::default()).await.unwrap();
    let error = refused(alone, replication()).await;
    assert!(error.contains("is not fed from the log"), "{error}");
    let fed = MemoryStore::new(LOG);
    let note = Some(LogHead::empty(LOG).encode());
    fed.commit(periapt_store::Batch { note, ..Default::default() }).await.unwrap();
    let error = refused(fed, None).await;
    assert!(error.contains("start the controller with --log"), "{error}");
    assert_eq!(set.log.member().id(), LOG);
    assert!(set.log.entries().is_empty());
}
