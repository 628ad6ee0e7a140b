//! Removing the log of a bootstrap that is undone: its own one wholly, and that of another controller never.

use bytes::Bytes;
use etcd_client::{Client, GetOptions};
use periapt_host_api::{Digest, LEVEL, Revision, StoreId, Timestamp};
use periapt_log::{Announcement, Content, Entry, EntryId, Leadership, Log, LogError, StoredEntry, Term};
use periapt_log_etcd::{BegunLog, EtcdLog, EtcdOptions, EtcdUrl, OpenError, RemoveError, testing::TestEtcd};
use uuid::Uuid;

use crate::fixture::{announcement, opened_patiently, options, within};

/// The fingerprint of the keys of the bootstrap's controller.
fn keys() -> Digest {
    Digest::of(b"keys of the bootstrap's controller")
}

/// Returns the log of a bootstrap whose controller is `one`.
fn begun(after: u64) -> BegunLog {
    BegunLog { after: Revision(after), member: "one".into(), keys: Some(keys()) }
}

/// Begins a log once the servers answer.
async fn begin(options: &EtcdOptions, after: u64) {
    within(async {
        loop {
            match EtcdLog::begin(options, Revision(after)).await {
                Err(OpenError::Unreachable(_) | OpenError::NoQuorum(_)) => tokio::task::yield_now().await,
                answer => return answer.unwrap(),
            }
        }
    })
    .await;
}

/// Removes a log, as soon as etcd answers in time.
async fn removed(options: &EtcdOptions, begun: &BegunLog) -> Result<(), RemoveError> {
    within(async {
        loop {
            match EtcdLog::remove(options, begun).await {
                Err(RemoveError::Open(
                    OpenError::Unreachable(_)
                    | OpenError::NoQuorum(_)
                    | OpenError::Log(LogError::Unavailable(_)),
                )) => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    })
    .await
}

/// Returns the keys that etcd has.
async fn all_keys(etcd: &TestEtcd) -> Vec<String> {
    let mut client = Client::connect(&etcd.url().endpoints, None).await.unwrap();
    let all = GetOptions::new().with_all_keys().with_keys_only();
    let found = within(client.get("", Some(all))).await.unwrap();
    found.kvs().iter().map(|found| found.key_str().unwrap().to_owned()).collect()
}

/// Leads a log as a controller with these keys, and appends the entry that begins the term and a large one.
async fn led(log: &EtcdLog, member: &str, keys: Option<Digest>, after: u64) -> Leadership {
    let own = Announcement { keys, ..announcement(member) };
    let leadership = within(log.acquire(own.clone())).await.unwrap();
    let large = vec![(b"key".to_vec(), Some(noise()))];
    let contents = [Content::Term(own), Content::Batch { entities: large, records: Vec::new() }];
    for (content, position) in contents.into_iter().zip(after + 1..) {
        let bytes = entry(leadership.term(), content);
        within(log.append(leadership.term(), Revision(position), bytes)).await.unwrap();
    }
    leadership
}

/// Returns more bytes than fit under one key of etcd, which no compression makes less.
fn noise() -> Vec<u8> {
    (0_u32..80_000).flat_map(|number| *Digest::of(&number.to_be_bytes()).as_bytes()).collect()
}

fn entry(term: Term, content: Content) -> Bytes {
    let (id, at) = (EntryId(Uuid::from_u128(1)), Timestamp::from_second(1).unwrap());
    let entry = Entry { id, term, at, level: LEVEL, previous: Digest::of(b""), content };
    entry.encode().unwrap()
}

/// Checks that a log is not removed for this reason, and loses no entry.
async fn stays(options: &EtcdOptions, begun: &BegunLog, part: &str) {
    let read = async || -> Vec<StoredEntry> {
        let log = opened_patiently(options).await;
        within(log.read(begun.after, usize::MAX)).await.unwrap()
    };
    let before = read().await;
    let error = removed(options, begun).await.unwrap_err();
    assert!(matches!(&error, RemoveError::Shared(reason) if reason.contains(part)), "{error}");
    assert_eq!(read().await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_begun_log_is_removed_wholly_and_can_be_begun_again() {
    let etcd = TestEtcd::start(1);
    let neighbour = EtcdUrl { prefix: "periapt/other".into(), ..etcd.url() };
    for after in [0, 17] {
        let options = options(&etcd);
        begin(&options, after).await;
        EtcdLog::begin(&EtcdOptions { url: neighbour.clone(), ..options.clone() }, Revision(0))
            .await
            .unwrap();
        let log = opened_patiently(&options).await;
        let leadership = led(&log, "one", Some(keys()), after).await;
        assert!(all_keys(&etcd).await.iter().any(|key| key.contains("/part/")), "the large entry has parts");
        // The controller was killed: its leadership is still there.
        removed(&options, &begun(after)).await.unwrap();
        let left = all_keys(&etcd).await;
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(left.iter().all(|key| key.starts_with("periapt/other/")), "the neighbour's stay: {left:?}");
        // The controller that was taken for dead writes nothing any more.
        let late = entry(leadership.term(), Content::Term(announcement("one")));
        let late = within(log.append(leadership.term(), Revision(after + 3), late)).await;
        assert!(matches!(late, Err(LogError::Foreign(_))), "{late:?}");
        assert_eq!(all_keys(&etcd).await, left);
        // A second removal finds nothing.
        removed(&options, &begun(after)).await.unwrap();
        let mut client = Client::connect(&etcd.url().endpoints, None).await.unwrap();
        within(client.delete("periapt/other/", Some(etcd_client::DeleteOptions::new().with_prefix())))
            .await
            .unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_no_controller_has_led_yet_is_removed() {
    let etcd = TestEtcd::start(1);
    let options = options(&etcd);
    begin(&options, 0).await;
    let without_keys = BegunLog { keys: None, ..begun(0) };
    removed(&options, &without_keys).await.unwrap();
    assert!(all_keys(&etcd).await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_another_controller_has_begun_led_or_trimmed_stays() {
    let etcd = TestEtcd::start(1);
    let own = options(&etcd);
    begin(&own, 0).await;
    let log = opened_patiently(&own).await;
    let leadership = led(&log, "two", Some(keys()), 0).await;
    stays(&own, &begun(0), "controller \"two\" has led it").await;
    let named_two = |keys| BegunLog { member: "two".into(), keys, ..begun(0) };
    stays(&own, &named_two(Some(Digest::of(b"other keys"))), "controller \"two\" has led it").await;
    stays(&own, &named_two(None), "controller \"two\" has led it").await;
    let replaced = EtcdOptions { fresh_id: StoreId(Uuid::from_u128(u128::MAX)), ..own.clone() };
    stays(&replaced, &named_two(Some(keys())), "another controller has begun one there").await;
    stays(&own, &BegunLog { after: Revision(1), ..named_two(Some(keys())) }, "trimmed").await;
    // An earlier leadership counts as well as the last one.
    drop(leadership);
    let third = Announcement { keys: Some(keys()), ..announcement("three") };
    let leadership = within(log.acquire(third.clone())).await.unwrap();
    let bytes = entry(leadership.term(), Content::Term(third));
    within(log.append(leadership.term(), Revision(3), bytes)).await.unwrap();
    stays(&own, &BegunLog { member: "three".into(), ..begun(0) }, "controller \"two\" has led it").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_removal_while_its_controller_still_writes_removes_all_or_nothing() {
    let etcd = TestEtcd::start(1);
    let options = options(&etcd);
    begin(&options, 0).await;
    let log = opened_patiently(&options).await;
    let leadership = led(&log, "one", Some(keys()), 0).await;
    let (written, term) = (log.clone(), leadership.term());
    let writing = tokio::spawn(async move {
        for position in 3.. {
            let content = Content::Batch { entities: Vec::new(), records: Vec::new() };
            match written.append(term, Revision(position), entry(term, content)).await {
                Ok(()) => {}
                Err(error) if error.is_temporary() => return None,
                Err(error) => return Some(error),
            }
        }
        None
    });
    match removed(&options, &begun(0)).await {
        Ok(()) => {
            let refused = within(writing).await.unwrap();
            assert!(matches!(refused, Some(LogError::Foreign(_)) | None), "{refused:?}");
            assert!(all_keys(&etcd).await.is_empty());
        }
        Err(RemoveError::Shared(reason)) => {
            assert!(reason.contains("writes into it"), "{reason}");
            writing.abort();
            let entries = within(log.read(Revision(0), usize::MAX)).await.unwrap();
            assert!(entries.iter().zip(1..).all(|(entry, position)| entry.position == Revision(position)));
            assert!(entries.len() > 2);
        }
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_whose_place_another_was_begun_is_not_led() {
    let etcd = TestEtcd::start(1);
    let first = options(&etcd);
    begin(&first, 0).await;
    let log = opened_patiently(&first).await;
    let second = EtcdOptions { fresh_id: StoreId(Uuid::from_u128(u128::MAX)), ..first };
    begin(&second, 0).await;
    let refused = within(log.acquire(announcement("one"))).await.err();
    assert!(matches!(refused, Some(LogError::Refused(_))), "{refused:?}");
    EtcdLog::is_free(&second).await.unwrap();
}
