//! Several controllers of one log, in one process: commands through any of them, leaders that are cut off or end, and
//! the same state everywhere.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use periapt_blobs::{Blobs, SharedStore};
use periapt_client::{Client, ClientError, Identity};
use periapt_controller::{Handle, KEPT_LOG_BYTES, Options, ReplicationOptions, RunError};
use periapt_host_api::{
    AgentName, ErrorCode, ModelName, Revision, StoreId,
    command::{Answer, ControllerCommand, MemberInfo, MemberRole},
    member::LogPlace,
};
use periapt_log::{Content, Entry, Log as _, LogHead, MemoryLog, MemoryLogMember};
use periapt_store::{LoadedState, MemoryStore, Order, Record, Store as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::{
    fixture::{self, Agent, Faults, ManualClock, TIMEOUT},
    raw,
};

const ID: &str = "4f0c8f5e-6f0a-4f39-9a41-1f2a53b0c002";
const LOG: StoreId = StoreId(uuid::Uuid::from_u128(70));

/// The controllers of one log.
pub(crate) struct Set {
    log: MemoryLog,
    /// The blobs of each controller, or its cache of shared ones, in a directory of its name.
    blobs: Arc<TempDir>,
    /// The object store that has the blobs.
    shared: Option<SharedStore>,
    pub(crate) clock: ManualClock,
    kept_bytes: usize,
}

/// One controller.
pub(crate) struct Member {
    access: MemoryLogMember,
    memory: Arc<MemoryStore>,
    handle: Handle,
    pub(crate) client: Client,
    running: JoinHandle<Result<(), RunError>>,
}

fn place() -> LogPlace {
    LogPlace { url: "memory:".into(), authority: None, identity: None }
}

impl Set {
    pub(crate) fn new() -> Self {
        Self::keeping(KEPT_LOG_BYTES)
    }

    /// Returns a set of controllers that keep so many bytes of entries.
    fn keeping(kept_bytes: usize) -> Self {
        let (log, blobs) = (MemoryLog::new(LOG), Arc::new(TempDir::new().unwrap()));
        Self { log, blobs, shared: None, clock: ManualClock::default(), kept_bytes }
    }

    /// Returns a set of controllers that keep blobs in an object store.
    pub(crate) fn sharing(shared: SharedStore) -> Self {
        Self { shared: Some(shared), ..Self::new() }
    }

    /// Returns controllers of the same log that keep blobs elsewhere.
    pub(crate) fn beside(&self, shared: Option<SharedStore>) -> Self {
        let (log, blobs, clock) = (self.log.clone(), Arc::clone(&self.blobs), self.clock.clone());
        Self { log, blobs, shared, clock, kept_bytes: self.kept_bytes }
    }

    fn replication(&self, name: &str, access: &MemoryLogMember) -> ReplicationOptions {
        ReplicationOptions {
            log: Arc::new(access.clone()),
            member: name.into(),
            place: place(),
            blobs: None,
            kept_bytes: self.kept_bytes,
        }
    }

    fn options(&self, name: &str, memory: Arc<MemoryStore>, access: &MemoryLogMember) -> Options {
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

    async fn start_on(&self, name: &str, memory: Arc<MemoryStore>) -> Member {
        let access = self.log.member();
        let options = self.options(name, Arc::clone(&memory), &access);
        let (mut handle, _, running) = fixture::run(options).await;
        assert!(tokio::time::timeout(TIMEOUT, handle.serving()).await.unwrap());
        let options = periapt_client::Options::new(handle.url(), Identity::Local)
            .with_busy_retry_timeout(Duration::from_secs(30));
        Member { access, memory, client: Client::new(options).unwrap(), handle, running }
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

    /// Waits until each of these controllers has applied the whole log, and returns their states.
    pub(crate) async fn settled(&self, members: &[&Member]) -> Vec<LoadedState> {
        let mut states = Vec::new();
        for member in members {
            loop {
                let state = member.memory.load().await.unwrap();
                if Some(state.revision) == self.log.entries().last().map(|entry| entry.position) {
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

    async fn add_model(&self, name: &str) -> Result<Answer, periapt_client::ClientError> {
        self.client.controller_command(ControllerCommand::add_model(ModelName::new(name).unwrap())).await
    }

    async fn models(&self) -> Vec<String> {
        let models = self.client.models().await.unwrap();
        let mut names: Vec<_> = models.into_iter().map(|model| model.name.to_string()).collect();
        names.sort();
        names
    }

    /// Returns the number of models that were added, as the audit log tells it.
    async fn added(&self) -> usize {
        let entries = self.client.audit(None).await.unwrap().entries;
        entries.iter().filter(|entry| entry.request.act == "add-model").count()
    }

    /// Waits until the controller leads.
    pub(crate) async fn leads(&self, name: &str) {
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

/// Adds a model as `curl` does, and returns the result.
async fn add_model_raw(address: SocketAddr, id: Option<&str>, name: &str) -> Value {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(id.map(|id| ("Periapt-Request-Id", id)));
    let add = ControllerCommand::add_model(ModelName::new(name).unwrap());
    let body = json!({ "commands": [add] }).to_string();
    let response = raw::request(address, "POST /v1/commands", &headers, &body).await;
    assert_eq!(response.status, 200, "{response:?}");
    response.json()["results"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_with_an_id_has_one_effect_and_one_answer_whichever_controllers_it_is_sent_to() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    one.leads("one").await;
    let first = add_model_raw(two.handle.address(), Some(ID), "a").await;
    assert!(first["ok"]["model"]["uuid"].is_string(), "{first}");
    one.stop().await;
    for member in [&three, &two] {
        assert_eq!(add_model_raw(member.handle.address(), Some(ID), "a").await, first);
    }
    assert_eq!(two.added().await, 1);
    let other = add_model_raw(three.handle.address(), Some(ID), "b").await;
    assert_eq!(other["error"]["code"], "bad-request", "{other}");
    let without = add_model_raw(three.handle.address(), None, "a").await;
    assert_eq!(without["error"]["code"], "already-exists", "{without}");
    for member in [two, three] {
        assert_eq!(member.models().await, ["a"]);
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_a_deposed_leader_holds_is_carried_out_once_if_its_request_has_an_id() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    one.leads("one").await;
    one.access.cut_off();
    // The leading controller takes both, and waits for the log. The followers do not learn what became of them.
    let [with, without] = [(&two, Some(ID), "a"), (&three, None, "b")].map(|(member, id, name)| {
        let address = member.handle.address();
        tokio::spawn(async move { add_model_raw(address, id, name).await })
    });
    let answer = with.await.unwrap();
    assert!(answer["ok"]["model"]["uuid"].is_string(), "another controller has carried it out: {answer}");
    let unknown = without.await.unwrap();
    assert_eq!(unknown["error"]["code"], "outcome-unknown", "{unknown}");
    assert_eq!(two.models().await, ["a"]);
    one.access.reconnect();
    // What the first controller held goes to the one that leads now. It has the answer to one command already.
    while one.models().await != ["a", "b"] {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(add_model_raw(one.handle.address(), Some(ID), "a").await, answer);
    assert_eq!(one.added().await, 2);
    for member in [one, two, three] {
        member.stop().await;
    }
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
    let replication = || Some(set.replication("one", &set.log.member()));
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

/// Returns all records of a store, by sequence.
async fn records(memory: &MemoryStore) -> Vec<(Vec<u8>, Vec<Record>)> {
    let mut all = Vec::new();
    for sequence in memory.sequences(None, usize::MAX).await.unwrap() {
        let order = Order::OldestFirst { after: None };
        let records = memory.records(&sequence, order, usize::MAX).await.unwrap();
        all.push((sequence, records));
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_trimmed_and_who_needs_what_it_does_not_have_takes_the_leaders_state() {
    let set = Set::keeping(0);
    let (one, two) = (set.start("one").await, set.start("two").await);
    for name in ["a", "b", "c"] {
        two.add_model(name).await.unwrap();
    }
    let (memory, two_s) = (Arc::clone(&two.memory), set.settled(&[&two]).await);
    two.stop().await;
    // The only other controller is away, and its last report does not count any more: nothing goes.
    tokio::time::sleep(Duration::from_secs(8)).await;
    one.add_model("d").await.unwrap();
    let first = |set: &Set| set.log.entries().first().map(|entry| entry.position);
    for _ in 0..20 {
        set.clock.advance(Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(first(&set), Some(Revision(1)));

    let three = set.start("three").await;
    let trimmed = async {
        while first(&set) <= Some(two_s[0].revision) {
            set.clock.advance(Duration::from_secs(10));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, trimmed).await.unwrap();
    // One comes back to what the log does not have any more, and one joins.
    let two = set.start_on("two", memory).await;
    let four = set.start("four").await;
    four.add_model("e").await.unwrap();
    let states = set.settled(&[&one, &two, &three, &four]).await;
    for (member, state) in [&one, &two, &three, &four].into_iter().zip(&states) {
        assert_eq!(*state, states[0]);
        assert_eq!(member.models().await, ["a", "b", "c", "d", "e"]);
        assert_eq!(records(&member.memory).await, records(&one.memory).await);
    }
    for member in [one, two, three, four] {
        member.stop().await;
    }
}

/// Removes a controller, as soon as it is listed.
async fn remove(set: &Set, by: &Member, name: &str) {
    let removed = async {
        loop {
            let command = ControllerCommand::RemoveController { name: name.into() };
            match by.client.controller_command(command).await {
                Ok(_) => return,
                Err(ClientError::Refused(refusal)) if refusal.code == ErrorCode::NotFound => {}
                Err(failure) => panic!("{failure}"),
            }
            set.clock.advance(Duration::from_secs(2));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, removed).await.unwrap();
}

/// Waits until a controller has ended, and returns its last word.
async fn last_word(running: JoinHandle<Result<(), RunError>>) -> String {
    match tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err() {
        RunError::Removed(word) => word,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_removed_ends_stays_out_and_is_counted_no_more() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    let unknown = ControllerCommand::RemoveController { name: "four".into() };
    let refused = three.client.controller_command(unknown).await.unwrap_err();
    assert!(refused.to_string().contains("controller \"four\" not found"), "{refused}");

    // A follower ends, and so it does when it starts again.
    remove(&set, &three, "two").await;
    let Member { memory, running, .. } = two;
    let word = last_word(running).await;
    assert!(word.contains("controller \"two\" was removed") && word.contains("a new token"), "{word}");
    let (_, _, running) = fixture::run(set.options("two", memory, &set.log.member())).await;
    last_word(running).await;
    let names = async |member: &Member| -> Vec<String> {
        let members = member.client.controller().await.unwrap().members;
        members.into_iter().map(|member| member.name).collect()
    };
    assert_eq!(names(&one).await, ["one", "three"]);

    // The one that leads answers, ends, and another one leads.
    remove(&set, &three, "one").await;
    last_word(one.running).await;
    three.add_model("a").await.unwrap();
    assert_eq!(names(&three).await, ["three"]);
    let last = ControllerCommand::RemoveController { name: "three".into() };
    let refused = three.client.controller_command(last).await.unwrap_err();
    assert!(refused.to_string().contains("is the only one"), "{refused}");
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_with_other_keys_ends_with_a_word_and_writes_nothing() {
    let set = Set::new();
    let one = set.start("one").await;
    one.add_model("a").await.unwrap();
    let memory = Arc::new(MemoryStore::new(LOG));
    let options = Options {
        seal: periapt_controller::SealKey::new(&[6; 32]).unwrap(),
        ..set.options("two", Arc::clone(&memory), &set.log.member())
    };
    let (_, _, running) = fixture::run(options).await;
    let ended = tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err().to_string();
    assert!(ended.contains("controller \"one\" of this log has other keys than this one"), "{ended}");
    assert_eq!(memory.load().await.unwrap().revision, Revision(0));
    one.stop().await;
}
