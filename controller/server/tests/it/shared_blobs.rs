//! Blobs of several controllers in one object store: no copies, one who deletes, and no start without the place.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture, stream::BoxStream};
use periapt_blobs::{
    Blobs, SharedStore,
    testing::{Proxy, S3Fault, TestS3},
};
use periapt_client::{Client, Identity, Options as ClientOptions};
use periapt_controller::{Options, ReplicationOptions};
use periapt_host_api::{Digest, Revision, StoreId, Timestamp, command::MemberRole};
use periapt_log::{Announcement, Leadership, Log, LogError, LogLeader, MemoryLogMember, StoredEntry, Term};
use periapt_store::MemoryStore;
use tempfile::TempDir;

use crate::{
    fixture::{self, Faults, ManualClock, TIMEOUT, charm, larger_charm},
    set::{LOG, Member, Set},
};

const PREFIX: &str = "some/prefix";

fn store(server: &TestS3) -> SharedStore {
    SharedStore::of(&server.options(PREFIX)).unwrap()
}

/// Returns the digests of the charms in the object store.
async fn stored(server: &TestS3) -> Vec<Digest> {
    let cache = TempDir::new().unwrap();
    let blobs = Blobs::in_shared(&store(server), cache.path()).unwrap();
    blobs.objects().await.unwrap().into_iter().map(|object| object.digest).collect()
}

async fn leads(member: &Member, name: &str) -> bool {
    let members = member.client.controller().await.unwrap().members;
    members.iter().any(|member| member.name == name && member.role == MemberRole::Leader)
}

/// Moves the clock of the controllers past the age at which an object of now may be deleted.
fn age(clock: &ManualClock) {
    let ahead = Timestamp::now().as_millisecond() - periapt_controller::Clock::now(clock).as_millisecond();
    clock.advance(Duration::from_millis(ahead.try_into().unwrap()) + Duration::from_secs(25 * 3_600));
}

/// Lets time pass until nothing is stored.
async fn until_deleted(set: &Set, server: &TestS3) {
    let waiting = async {
        while !stored(server).await.is_empty() {
            set.clock.advance(Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_in_the_object_store_is_served_by_each_controller_though_no_other_was_there() {
    let server = TestS3::start();
    let set = Set::sharing(store(&server));
    let (one, two) = (set.start("one").await, set.start("two").await);
    two.stop().await;
    // No other controller runs: none is needed for a copy.
    let digest = one.client.upload_charm(charm()).await.unwrap().digest;
    let content = Digest::of(b"content");
    let pieces = || futures_util::stream::iter([Ok(bytes::Bytes::from_static(b"content"))]);
    one.client.upload_resource(&content, pieces).await.unwrap();
    let place = one.client.controller().await.unwrap().blobs.unwrap();
    assert!(place.starts_with("s3://blobs/some/prefix"), "{place}");
    one.stop().await;
    // Another controller, which has an empty disk, serves it without the first one.
    let three = set.start("three").await;
    assert_eq!(three.client.fetch_charm(&digest).await.unwrap(), charm());
    assert_eq!(stored(&server).await, [digest]);
    three.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_leading_controller_alone_deletes_what_no_model_uses_and_no_upload_relies_on() {
    let server = TestS3::start();
    let set = Set::sharing(store(&server));
    let (one, two) = (set.start("one").await, set.start("two").await);
    assert!(leads(&one, "one").await);
    let digest = two.client.upload_charm(larger_charm()).await.unwrap().digest;
    // It is unused for three hours; but an upload of the same bytes might still rely on the object.
    for _ in 0..180 {
        set.clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(stored(&server).await, [digest]);
    age(&set.clock);
    until_deleted(&set, &server).await;
    assert!(!two.client.has_charm(&digest).await.unwrap());
    // The bytes may come again.
    assert_eq!(two.client.upload_charm(larger_charm()).await.unwrap().digest, digest);
    assert_eq!(stored(&server).await, [digest]);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_cut_off_from_the_log_deletes_no_object() {
    let server = TestS3::start();
    let set = Set::sharing(store(&server));
    let one = set.start("one").await;
    let digest = one.client.upload_charm(charm()).await.unwrap().digest;
    one.cut_off();
    age(&set.clock);
    for _ in 0..180 {
        set.clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(stored(&server).await, [digest], "another controller may lead, and register it");
    one.reconnect();
    until_deleted(&set, &server).await;
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_whose_term_the_log_does_not_confirm_deletes_no_object() {
    let server = TestS3::start();
    let set = Set::sharing(store(&server));
    let (access, refused) = (set.log.member(), Arc::new(Refused::default()));
    let log = Arc::new(Unconfirmed { inner: access.clone(), refused: Arc::clone(&refused) });
    let mut options = set.options("one", Arc::new(MemoryStore::new(LOG)), &access);
    options.replication = Some(ReplicationOptions { log, ..set.replication("one", &access) });
    let (mut handle, _, running) = fixture::run(options).await;
    assert!(handle.serving().await);
    let options = ClientOptions::new(handle.url(), Identity::Local);
    let client = Client::new(options.with_busy_retry_timeout(TIMEOUT)).unwrap();
    let digest = client.upload_charm(charm()).await.unwrap().digest;
    refused.is_on.store(true, Ordering::SeqCst);
    age(&set.clock);
    let asks = async {
        for looks in 0.. {
            if looks >= 180 && refused.calls.load(Ordering::SeqCst) > 0 {
                break;
            }
            set.clock.advance(Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, asks).await.expect("it asks the log");
    assert_eq!(stored(&server).await, [digest], "another controller may lead, and register it");
    refused.is_on.store(false, Ordering::SeqCst);
    until_deleted(&set, &server).await;
    handle.shutdown();
    running.await.unwrap().unwrap();
}

/// The confirmations of terms that a log refuses.
#[derive(Default)]
struct Refused {
    is_on: AtomicBool,
    calls: AtomicUsize,
}

/// A log that does everything but confirm terms.
struct Unconfirmed {
    inner: MemoryLogMember,
    refused: Arc<Refused>,
}

impl Log for Unconfirmed {
    fn id(&self) -> StoreId {
        self.inner.id()
    }

    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>> {
        self.inner.append(term, position, entry)
    }

    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>> {
        if self.refused.is_on.load(Ordering::SeqCst) {
            self.refused.calls.fetch_add(1, Ordering::SeqCst);
            return async move { Err(LogError::Deposed(term)) }.boxed();
        }
        self.inner.confirm(term)
    }

    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>> {
        self.inner.end()
    }

    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>> {
        self.inner.read(after, max_bytes)
    }

    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>> {
        self.inner.follow(after)
    }

    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>> {
        self.inner.trim(term, through)
    }

    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>> {
        self.inner.acquire(announcement)
    }

    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
        self.inner.leaders()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_keeps_blobs_elsewhere_ends_with_a_word() {
    let server = TestS3::start();
    let set = Set::sharing(store(&server));
    let one = set.start("one").await;
    let elsewhere = set.beside(None);
    let word = elsewhere.ends("two", set.clock.clone()).await;
    assert!(word.contains("controller \"one\" leads and keeps blobs in s3://blobs/some/prefix"), "{word}");
    assert!(word.contains("this one in the directories of the controllers"), "{word}");
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_that_fails_is_told_to_the_caller_and_nothing_is_registered() {
    let server = TestS3::start();
    let proxy = Proxy::before(server.endpoint(), None).await;
    let set = Set::sharing(SharedStore::of(&server.options_at(proxy.url(), PREFIX)).unwrap());
    let one = set.start("one").await;
    proxy.fail(http::Method::PUT, S3Fault::Denied, usize::MAX);
    let refused = one.client.upload_charm(charm()).await.unwrap_err();
    assert!(refused.to_string().contains("may not"), "{refused}");
    proxy.heal();
    assert!(!one.client.has_charm(&Digest::of(&charm())).await.unwrap());
    let digest = one.client.upload_charm(charm()).await.unwrap().digest;
    assert_eq!(digest, Digest::of(&charm()));
    one.stop().await;
}

/// A controller alone, in a directory.
struct Alone {
    directory: TempDir,
    memory: Arc<MemoryStore>,
}

impl Alone {
    fn options(&self, shared: Option<&SharedStore>) -> Options {
        let blobs = self.directory.path().join("blobs");
        let local = Options {
            directory: Some(self.directory.path().to_owned()),
            ..fixture::options(Arc::clone(&self.memory), Faults::default(), &blobs)
        };
        match shared {
            Some(shared) => local.with_shared_blobs(shared).unwrap(),
            None => local,
        }
    }

    async fn refused(&self, shared: Option<&SharedStore>) -> String {
        let Err(error) = self.options(shared).build().await else { panic!("it starts") };
        error.to_string()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn blobs_of_the_directory_are_brought_along_and_the_place_is_needed_from_then_on() {
    let server = TestS3::start();
    let (directory, id) = (TempDir::new().unwrap(), StoreId(uuid::Uuid::from_u128(7)));
    let alone = Alone { directory, memory: Arc::new(MemoryStore::new(id)) };
    let (handle, client, running) = fixture::run(alone.options(None)).await;
    let digest = client.upload_charm(charm()).await.unwrap().digest;
    handle.shutdown();
    running.await.unwrap().unwrap();

    // A blob that is nowhere is told at the start, and the place is not taken for the blobs.
    let blobs = alone.directory.path().join("blobs");
    let away = alone.directory.path().join("away");
    std::fs::rename(&blobs, &away).unwrap();
    let word = alone.refused(Some(&store(&server))).await;
    assert!(
        word.contains(&format!("1 blobs, such as {digest}, are neither in s3://blobs/some/prefix")),
        "{word}"
    );
    std::fs::remove_dir_all(&blobs).unwrap();
    std::fs::rename(&away, &blobs).unwrap();

    let (handle, client, running) = fixture::run(alone.options(Some(&store(&server)))).await;
    assert_eq!(stored(&server).await, [digest]);
    std::fs::remove_dir_all(&blobs).unwrap();
    assert_eq!(client.fetch_charm(&digest).await.unwrap(), charm());
    handle.shutdown();
    running.await.unwrap().unwrap();

    let word = alone.refused(None).await;
    assert!(word.contains("the blobs of this controller are in s3://blobs/some/prefix"), "{word}");
    assert!(word.contains("start it with --blobs"), "{word}");

    // Another store's controller is not let in.
    let other = MemoryStore::new(StoreId(uuid::Uuid::from_u128(8)));
    let stranger = Alone { directory: TempDir::new().unwrap(), memory: Arc::new(other) };
    let word = stranger.refused(Some(&store(&server))).await;
    assert!(word.contains("s3://blobs/some/prefix") && word.contains(&id.to_string()), "{word}");
}
