//! A log in servers of etcd, and waits.

use std::time::Duration;

use bytes::Bytes;
use periapt_host_api::{Level, Revision, StoreId};
use periapt_log::{Announcement, Leadership, Log, LogError, Term};
use periapt_log_etcd::{EtcdLog, EtcdOptions, EtcdTls, EtcdTuning, OpenError, testing::TestEtcd};
use uuid::Uuid;

/// The timeout of each wait. No step takes this long, even on a slow machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) fn options(etcd: &TestEtcd) -> EtcdOptions {
    EtcdOptions { url: etcd.url(), tls: None, fresh_id: StoreId(fresh_uuid()) }
}

/// Opens the log once the servers answer.
pub(crate) async fn opened(etcd: &TestEtcd) -> EtcdLog {
    opened_with(&options(etcd), EtcdTuning::default()).await
}

/// Opens the log with timeouts that no pause of a busy machine exceeds.
pub(crate) async fn opened_patiently(options: &EtcdOptions) -> EtcdLog {
    opened_with(options, EtcdTuning { timeout: Duration::from_secs(20), ..EtcdTuning::default() }).await
}

pub(crate) async fn opened_by_tls(etcd: &TestEtcd, tls: EtcdTls) -> EtcdLog {
    opened_with(&EtcdOptions { tls: Some(tls), ..options(etcd) }, EtcdTuning::default()).await
}

async fn opened_with(options: &EtcdOptions, tuning: EtcdTuning) -> EtcdLog {
    within(async {
        loop {
            match EtcdLog::open_tuned(options, tuning.clone()).await {
                Ok(log) => return log,
                Err(OpenError::Unreachable(_) | OpenError::NoQuorum(_)) => tokio::task::yield_now().await,
                Err(other) => panic!("{other}"),
            }
        }
    })
    .await
}

/// Returns the error of opening, once servers that start answer.
pub(crate) async fn refusal(options: &EtcdOptions) -> OpenError {
    within(async {
        loop {
            match EtcdLog::open(options).await.expect_err("it must be refused") {
                OpenError::Unreachable(reason) if reason.contains("refused") => {
                    tokio::task::yield_now().await
                }
                error => return error,
            }
        }
    })
    .await
}

pub(crate) fn announcement(member: &str) -> Announcement {
    Announcement {
        member: member.into(),
        url: format!("https://{member}:17070"),
        level: Level(1),
        keys: None,
        blobs: None,
    }
}

/// Waits for the leadership, however often etcd is not there.
pub(crate) async fn leading(log: &EtcdLog, member: &str) -> Leadership {
    within(async {
        loop {
            match log.acquire(announcement(member)).await {
                Ok(leadership) => return leadership,
                Err(error) => assert!(error.is_temporary(), "{error}"),
            }
        }
    })
    .await
}

/// Appends an entry, in doubt again and again as the writer does.
pub(crate) async fn appended(log: &EtcdLog, term: Term, position: u64, entry: &str) -> Result<(), LogError> {
    let entry = Bytes::copy_from_slice(entry.as_bytes());
    within(async {
        loop {
            match log.append(term, Revision(position), entry.clone()).await {
                Err(error) if error.is_temporary() => {}
                answer => return answer,
            }
        }
    })
    .await
}

/// Reads the texts of all entries.
pub(crate) async fn texts(log: &EtcdLog) -> Vec<String> {
    let read = within(async {
        loop {
            match log.read(Revision(0), usize::MAX).await {
                Err(error) if error.is_temporary() => {}
                answer => return answer.unwrap(),
            }
        }
    });
    read.await.iter().map(|entry| String::from_utf8_lossy(&entry.bytes).into_owned()).collect()
}

pub(crate) async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, wait).await.expect("no answer within the timeout")
}

/// Returns an id that differs from call to call: the first member that opens a log gives it its own.
fn fresh_uuid() -> Uuid {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(1);
    Uuid::from_u128(NEXT.fetch_add(1, Ordering::Relaxed).into())
}
