//! The suite of logs, and what etcd's form of the log adds to it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use periapt_host_api::Revision;
use periapt_log::{
    Log, LogError,
    suite::{self, TestedLog},
};
use periapt_log_etcd::testing::TestEtcd;

use crate::fixture::{appended, leading, opened, opened_patiently, options, texts, within};

struct Tested(TestEtcd);

impl TestedLog for Tested {
    fn member(&mut self) -> BoxFuture<'_, Arc<dyn Log>> {
        async { Arc::new(opened_patiently(&options(&self.0)).await) as Arc<dyn Log> }.boxed()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_one_server_passes_the_suite() {
    suite::run(Tested(TestEtcd::start(1))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_in_three_servers_passes_the_suite() {
    suite::run(Tested(TestEtcd::start(3))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_of_all_sizes_are_read_in_pages_and_followed() {
    let etcd = TestEtcd::start(1);
    let log = opened_patiently(&options(&etcd)).await;
    let leadership = leading(&log, "a").await;
    // Many small ones make long pages; the large ones behind them do not fit into one of these.
    let sizes = [vec![100; 300], vec![1 << 20; 60], vec![(1 << 20) + 1, (5 << 20) + 7, 0, 1]].concat();
    let entries: Vec<Bytes> =
        sizes.iter().zip((0..=u8::MAX).cycle()).map(|(size, byte)| vec![byte; *size].into()).collect();
    let mut followed = log.follow(Revision(0));
    for (entry, position) in entries.iter().zip(1..) {
        log.append(leadership.term(), Revision(position), entry.clone()).await.unwrap();
    }
    let read = log.read(Revision(0), usize::MAX).await.unwrap();
    assert_eq!(read.len(), entries.len());
    for (entry, (found, position)) in entries.iter().zip(read.iter().zip(1..)) {
        assert_eq!((found.position, &found.bytes), (Revision(position), entry));
        let followed = within(followed.next()).await.unwrap().unwrap();
        assert!(followed == *found, "position {position} is followed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_goes_on_after_its_history_was_compacted() {
    let etcd = TestEtcd::start(1);
    let log = opened_patiently(&options(&etcd)).await;
    let leadership = leading(&log, "a").await;
    let term = leadership.term();
    let mut followed = log.follow(Revision(0));
    let mut position = 0;
    // Two compactions need two trims that lie some hundred revisions apart.
    for _ in 0..4 {
        for _ in 0..600 {
            position += 1;
            appended(&log, term, position, "x").await.unwrap();
            let entry = within(followed.next()).await.unwrap().unwrap();
            assert_eq!(entry.position, Revision(position));
        }
        log.trim(term, Revision(position)).await.unwrap();
    }
    assert_eq!(log.read(Revision(0), 1).await, Err(LogError::Trimmed(Revision(position))));
    assert_eq!(texts_after(&log, position).await, 0);
    // The position of a trimmed entry may have had any entry: no answer would be true.
    let late = log.append(term, Revision(1), "x".into()).await;
    assert_eq!(late, Err(LogError::Trimmed(Revision(position))));
}

async fn texts_after(log: &impl Log, position: u64) -> usize {
    log.read(Revision(position), usize::MAX).await.unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn many_members_that_append_at_one_position_agree_on_one_entry() {
    let etcd = TestEtcd::start(1);
    let log = opened(&etcd).await;
    let leadership = leading(&log, "a").await;
    let term = leadership.term();
    for position in 1..=20 {
        let entries: Vec<_> = (0..5).map(|writer| format!("{writer} at {position}")).collect();
        let all = entries.iter().map(|entry| appended(&log, term, position, entry));
        let answers = futures_util::future::join_all(all).await;
        let won: Vec<_> = entries.iter().zip(&answers).filter(|(_, answer)| answer.is_ok()).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        assert_eq!(texts(&log).await.last(), Some(won[0].0));
        let taken = answers.iter().filter(|answer| **answer == Err(LogError::Taken(Revision(position))));
        assert_eq!(taken.count(), 4);
    }
}
