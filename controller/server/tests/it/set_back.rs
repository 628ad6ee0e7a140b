//! A log that was set back, as that of an etcd which is restored from an earlier snapshot: a controller that has applied
//! more ends with one error, serves nothing and writes nothing.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use parking_lot::Mutex;
use periapt_client::Client;
use periapt_controller::{Options, ReplicationOptions, RunError};
use periapt_host_api::{ModelName, Revision, StoreId, command::ControllerCommand};
use periapt_log::{
    Announcement, Entry, Leadership, Log, LogError, LogLeader, MemoryLog, MemoryLogMember, StoredEntry, Term,
};
use periapt_store::{MemoryStore, Store as _};
use tokio::task::JoinHandle;

use crate::{
    fixture::{self, TIMEOUT},
    set::{LOG, Set},
};

/// Leads a log that no controller leads, in a term that is not before any of these entries.
async fn led(member: &MemoryLogMember, entries: &[StoredEntry]) -> Leadership {
    let last = entries.last().map(|last| Entry::decode(last.position, &last.bytes).unwrap().term);
    loop {
        let leadership = member.acquire(Announcement::default()).await.unwrap();
        if Some(leadership.term()) >= last {
            return leadership;
        }
    }
}

/// Returns a log of the same id with the entries up to a position.
async fn copied(log: &MemoryLog, through: Revision) -> MemoryLog {
    let copy = MemoryLog::new(LOG);
    let (member, mut entries) = (copy.member(), log.entries());
    entries.retain(|entry| entry.position <= through);
    let leadership = led(&member, &entries).await;
    for StoredEntry { position, bytes } in entries {
        member.append(leadership.term(), position, bytes).await.unwrap();
    }
    assert_eq!(copy.end(), through);
    copy
}

/// Returns controllers with this log, and the blobs and the clock of another set.
fn with_log(set: &Set, log: MemoryLog) -> Set {
    let mut other = set.beside(None);
    other.log = log;
    other
}

/// Waits until a controller has ended, and returns its error.
async fn error_of(running: JoinHandle<Result<(), RunError>>) -> String {
    tokio::time::timeout(TIMEOUT, running).await.unwrap().unwrap().unwrap_err().to_string()
}

/// Starts a controller that must end. Returns its error. It serves nothing and writes nothing into the log.
async fn refused(set: &Set, name: &str, memory: &Arc<MemoryStore>) -> String {
    let (before, applied) = (set.log.entries(), applied(memory).await);
    let (mut handle, _, running) =
        fixture::run(set.options(name, Arc::clone(memory), &set.log.member())).await;
    let error = error_of(running).await;
    assert!(!handle.serving().await, "it has served: {error}");
    assert_eq!(set.log.entries(), before, "{error}");
    assert_eq!(self::applied(memory).await, applied, "{error}");
    error
}

/// Returns the position that a store has applied.
async fn applied(memory: &MemoryStore) -> Revision {
    memory.load().await.unwrap().revision
}

/// Returns the error of a controller whose log ends before what it has applied.
fn set_back(end: Revision, applied: Revision) -> String {
    format!(
        "etcd was set back: the log ends at position {end}, and this controller has applied position {applied}; stop all \
         controllers, and begin a new set with 'bootstrap --restore' and the directory of the one that has applied the \
         most"
    )
}

/// Runs two controllers until they have stopped, and returns their stores, and a position that the log had before.
async fn stopped(set: &Set) -> (Revision, [Arc<MemoryStore>; 2]) {
    let one = set.start("one").await;
    one.leads("one").await;
    let two = set.start("two").await;
    one.add_model("a").await.unwrap();
    let early = set.log.end();
    one.add_model("b").await.unwrap();
    set.settled(&[&one, &two]).await;
    let stores = [Arc::clone(&one.memory), Arc::clone(&two.memory)];
    two.stop().await;
    one.stop().await;
    (early, stores)
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_have_applied_more_than_the_log_has_end_with_a_word_and_write_nothing() {
    let set = Set::new();
    let (early, stores) = stopped(&set).await;
    let back = with_log(&set, copied(&set.log, early).await);
    for (name, memory) in ["one", "two"].into_iter().zip(&stores) {
        let ahead = applied(memory).await;
        assert!(ahead > early);
        assert_eq!(refused(&back, name, memory).await, set_back(early, ahead));
    }
    // A log that has trimmed all that it had tells its end alone.
    let member = back.log.member();
    let leadership = led(&member, &back.log.entries()).await;
    member.trim(leadership.term(), early).await.unwrap();
    drop(leadership);
    for (name, memory) in ["one", "two"].into_iter().zip(&stores) {
        assert_eq!(refused(&back, name, memory).await, set_back(early, applied(memory).await));
    }
    // With the log that it had, each goes on.
    let [one, two] = stores;
    let (one, two) = (set.start_on("one", one).await, set.start_on("two", two).await);
    for member in [one, two] {
        assert_eq!(member.models().await, ["a", "b"]);
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_end_with_a_word_if_the_log_has_another_history_however_long_it_is() {
    let set = Set::new();
    let (early, stores) = stopped(&set).await;
    let ahead = applied(&stores[0]).await.max(applied(&stores[1]).await);
    // A controller that has applied no more than the log has goes on with it.
    let fork = with_log(&set, copied(&set.log, early).await);
    let three = fork.start("three").await;
    for number in 0.. {
        if fork.log.end() > ahead {
            break;
        }
        three.add_model(&format!("other-{number}")).await.unwrap();
    }
    three.stop().await;

    for (name, memory) in ["one", "two"].into_iter().zip(&stores) {
        let own = applied(memory).await;
        let same_length = with_log(&set, copied(&fork.log, own).await);
        let longer = with_log(&set, copied(&fork.log, fork.log.end()).await);
        // The entry at the own end is gone, and the next one tells.
        let trimmed = with_log(&set, copied(&fork.log, fork.log.end()).await);
        let member = trimmed.log.member();
        let leadership = led(&member, &trimmed.log.entries()).await;
        member.trim(leadership.term(), own).await.unwrap();
        drop(leadership);
        for log in [same_length, longer, trimmed] {
            let error = refused(&log, name, memory).await;
            let expected = format!(
                "etcd was set back, and written again: at position {own} the log has another entry than this \
                 controller has applied; stop all controllers, and begin a new set with 'bootstrap --restore' and the \
                 directory of the one whose state you keep"
            );
            assert_eq!(error, expected);
        }
    }
}

/// A controller's access to a log that can be set back. Its streams and its leadership stay with the log as it was, as a
/// connection that shows nothing of it.
#[derive(Clone)]
struct SetBackLog(Arc<Mutex<MemoryLogMember>>);

impl SetBackLog {
    fn of(log: &MemoryLog) -> Self {
        Self(Arc::new(Mutex::new(log.member())))
    }

    fn set_back(&self, to: &MemoryLog) {
        *self.0.lock() = to.member();
    }

    fn now(&self) -> MemoryLogMember {
        self.0.lock().clone()
    }
}

impl Log for SetBackLog {
    fn id(&self) -> StoreId {
        LOG
    }

    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>> {
        let log = self.now();
        async move { log.append(term, position, entry).await }.boxed()
    }

    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>> {
        let log = self.now();
        async move { log.confirm(term).await }.boxed()
    }

    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>> {
        let log = self.now();
        async move { log.end().await }.boxed()
    }

    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>> {
        let log = self.now();
        async move { log.read(after, max_bytes).await }.boxed()
    }

    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>> {
        self.now().follow(after)
    }

    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>> {
        let log = self.now();
        async move { log.trim(term, through).await }.boxed()
    }

    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>> {
        self.now().acquire(announcement)
    }

    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
        self.now().leaders()
    }
}

/// A controller that runs with a log that can be set back.
struct Running {
    log: SetBackLog,
    memory: Arc<MemoryStore>,
    client: Client,
    running: JoinHandle<Result<(), RunError>>,
}

impl Running {
    async fn start(set: &Set, name: &str) -> Self {
        let (log, memory) = (SetBackLog::of(&set.log), Arc::new(MemoryStore::new(LOG)));
        let access = set.log.member();
        let replication = ReplicationOptions { log: Arc::new(log.clone()), ..set.replication(name, &access) };
        let options =
            Options { replication: Some(replication), ..set.options(name, Arc::clone(&memory), &access) };
        let (mut handle, client, running) = fixture::run(options).await;
        assert!(tokio::time::timeout(TIMEOUT, handle.serving()).await.unwrap());
        Self { log, memory, client, running }
    }

    async fn add_model(&self, name: &str) {
        let add = ControllerCommand::add_model(ModelName::new(name).unwrap());
        self.client.controller_command(add).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn controllers_that_run_end_with_a_word_when_their_log_is_set_back_and_write_nothing() {
    let set = Set::new();
    let (one, two) = (Running::start(&set, "one").await, Running::start(&set, "two").await);
    one.add_model("a").await;
    let early = set.log.end();
    two.add_model("b").await;
    for member in [&one, &two] {
        while applied(&member.memory).await <= early {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let back = copied(&set.log, early).await;
    for member in [&one, &two] {
        member.log.set_back(&back);
    }
    for Running { memory, running, .. } in [one, two] {
        let error = error_of(running).await;
        assert_eq!(error, set_back(early, applied(&memory).await));
    }
    assert_eq!(back.end(), early, "nothing is appended");
}
