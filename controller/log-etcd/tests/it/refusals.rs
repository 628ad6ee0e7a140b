//! Bad input: one clear error each, before anything is written.

use std::time::Duration;

use etcd_client::{Client, GetOptions};
use periapt_host_api::Revision;
use periapt_log::{Log, LogError, Term};
use periapt_log_etcd::{EtcdLog, EtcdOptions, EtcdUrl, OpenError, testing::TestEtcd};

use crate::fixture::{leading, opened_patiently, options, refusal, within};

async fn client(etcd: &TestEtcd) -> Client {
    Client::connect(&etcd.url().endpoints, None).await.unwrap()
}

/// Returns the keys that etcd has.
async fn keys(etcd: &TestEtcd) -> Vec<String> {
    let all = GetOptions::new().with_all_keys().with_keys_only();
    let found = within(async {
        loop {
            if let Ok(found) = client(etcd).await.get("", Some(all.clone())).await {
                return found;
            }
        }
    });
    found.await.kvs().iter().map(|found| found.key_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_is_not_there_is_named_with_each_endpoint() {
    let url: EtcdUrl = "etcd://127.0.0.1:1,no-such-host.invalid:2".parse().unwrap();
    let options = EtcdOptions { url, tls: None, fresh_id: periapt_host_api::StoreId(uuid::Uuid::nil()) };
    let error = within(EtcdLog::open(&options)).await.unwrap_err();
    let OpenError::Unreachable(reasons) = &error else { panic!("{error}") };
    assert!(reasons.contains("127.0.0.1:1: Connection refused"), "{reasons}");
    assert!(reasons.contains("no-such-host.invalid:2: "), "{reasons}");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_programs_keys_are_left_alone() {
    let etcd = TestEtcd::start(1);
    let mut client = client(&etcd).await;
    within(async { while client.put("periapt/other", "x", None).await.is_err() {} }).await;
    let error = refusal(&options(&etcd)).await;
    assert!(matches!(&error, OpenError::Foreign(reason) if reason.contains("periapt/other")), "{error}");
    assert_eq!(keys(&etcd).await, ["periapt/other"]);
    // A prefix is a directory: what only begins like it is no content of it.
    let other = EtcdUrl { prefix: "peri".into(), ..etcd.url() };
    EtcdLog::open(&EtcdOptions { url: other, ..options(&etcd) }).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_a_newer_form_is_left_alone() {
    let etcd = TestEtcd::start(1);
    let mut client = client(&etcd).await;
    within(async { while client.put("periapt/id", "periapt-log 2 x", None).await.is_err() {} }).await;
    let error = refusal(&options(&etcd)).await.to_string();
    assert!(error.contains("use a newer periapt"), "{error}");
    assert_eq!(keys(&etcd).await, ["periapt/id"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_must_be_there_is_not_made() {
    let etcd = TestEtcd::start(1);
    let absent = within(async {
        loop {
            match EtcdLog::open_present(&options(&etcd)).await {
                Err(OpenError::Unreachable(_) | OpenError::NoQuorum(_)) => tokio::task::yield_now().await,
                answer => return answer,
            }
        }
    });
    let absent = absent.await.unwrap_err();
    assert!(matches!(&absent, OpenError::Absent(url) if *url == etcd.url().to_string()), "{absent}");
    assert!(keys(&etcd).await.is_empty(), "nothing is written");
    let log = opened_patiently(&options(&etcd)).await;
    assert_eq!(EtcdLog::open_present(&options(&etcd)).await.unwrap().id(), log.id());
}

/// Appends entries until the log refuses one. Returns the refusal and the position of the last entry that was accepted.
async fn filled(log: &EtcdLog, term: Term) -> (LogError, u64) {
    let entry = bytes::Bytes::from(vec![7; 300_000]);
    let mut accepted = 0;
    loop {
        match within(log.append(term, Revision(accepted + 1), entry.clone())).await {
            Ok(()) => accepted += 1,
            Err(error) if error.is_temporary() => {}
            Err(error) => return (error, accepted),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_etcd_is_told_and_has_what_it_accepted_and_nothing_else() {
    let etcd = TestEtcd::start_with(1, &["--quota-backend-bytes=8388608"]);
    // The answer that there is no room comes with an entry that was appended if another writer has taken the room
    // in between.
    let of =
        |prefix: &str| EtcdOptions { url: EtcdUrl { prefix: prefix.into(), ..etcd.url() }, ..options(&etcd) };
    let (one, two) = (opened_patiently(&of("one")).await, opened_patiently(&of("two")).await);
    let (leads_one, leads_two) = (leading(&one, "one").await, leading(&two, "two").await);
    let ended = tokio::join!(filled(&one, leads_one.term()), filled(&two, leads_two.term()));
    for (log, (full, accepted)) in [(&one, ended.0), (&two, ended.1)] {
        assert!(matches!(&full, LogError::Refused(reason) if reason.contains("NOSPACE")), "{full}");
        assert!(accepted > 1, "some entries fit");
        // What was there can be read.
        assert_eq!(within(log.read(Revision(0), usize::MAX)).await.unwrap().len() as u64, accepted);
    }
    let error = refusal(&options(&etcd)).await;
    assert!(matches!(error, OpenError::Full(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_etcd_that_wants_users_is_told() {
    let etcd = TestEtcd::start(1);
    let mut client = client(&etcd).await;
    within(async { while client.user_add("root", "secret", None).await.is_err() {} }).await;
    client.user_grant_role("root", "root").await.unwrap();
    client.auth_enable().await.unwrap();
    let error = refusal(&options(&etcd)).await;
    assert!(matches!(error, OpenError::Denied(_)), "{error}");
    assert!(error.to_string().contains("common name"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_answers_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: EtcdUrl = format!("etcd://{}", listener.local_addr().unwrap()).parse().unwrap();
    let options = EtcdOptions { url, tls: None, fresh_id: periapt_host_api::StoreId(uuid::Uuid::nil()) };
    let opened = tokio::time::timeout(Duration::from_secs(30), EtcdLog::open(&options)).await;
    let error = opened.expect("it ends in time").unwrap_err();
    assert!(matches!(&error, OpenError::Unreachable(reason) if reason.contains("in time")), "{error}");
}
