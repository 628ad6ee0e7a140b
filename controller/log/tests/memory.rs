//! The in-memory log passes the suite, and members can be cut off from it.

use std::sync::Arc;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use periapt_host_api::{Revision, StoreId};
use periapt_log::{
    Announcement, LEADERSHIP_TTL, Log, LogError, MemoryLog,
    suite::{self, TestedLog},
};
use uuid::Uuid;

struct Tested(MemoryLog);

impl TestedLog for Tested {
    fn member(&mut self) -> BoxFuture<'_, Arc<dyn Log>> {
        let member: Arc<dyn Log> = Arc::new(self.0.member());
        std::future::ready(member).boxed()
    }
}

fn log() -> MemoryLog {
    MemoryLog::new(StoreId(Uuid::from_u128(1)))
}

#[tokio::test(start_paused = true)]
async fn the_log_in_memory_passes_the_suite() {
    suite::run(Tested(log())).await;
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_loses_its_leadership_and_knows_it() {
    let log = log();
    let (one, two) = (log.member(), log.member());
    let first = one.acquire(Announcement::default()).await.unwrap();
    tokio::time::advance(3 * LEADERSHIP_TTL).await;
    one.append(first.term(), Revision(1), "kept up by renewals".into()).await.unwrap();
    one.cut_off();
    let cut = one.append(first.term(), Revision(2), "in doubt".into()).await;
    assert!(matches!(cut, Err(LogError::Unavailable(_))), "{cut:?}");
    let second = two.acquire(Announcement::default()).await.unwrap();
    first.lost().await;
    one.reconnect();
    let late = one.append(first.term(), Revision(2), "in doubt".into()).await;
    assert_eq!(late, Err(LogError::Deposed(first.term())));
    two.append(second.term(), Revision(2), "another".into()).await.unwrap();
    assert_eq!(log.entries().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn streams_of_a_member_that_is_cut_off_end_with_an_error() {
    let log = log();
    let member = log.member();
    let (mut entries, mut leaders) = (member.follow(Revision(0)), member.leaders());
    assert_eq!(leaders.next().await, Some(Ok(None)));
    assert!(entries.next().now_or_never().is_none());
    member.cut_off();
    assert!(matches!(entries.next().await, Some(Err(LogError::Unavailable(_)))));
    assert!(entries.next().await.is_none());
    assert!(matches!(leaders.next().await, Some(Err(LogError::Unavailable(_)))));
    assert!(leaders.next().await.is_none());
}
