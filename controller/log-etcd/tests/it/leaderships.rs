//! Leaderships, when etcd or its holder dies.

use futures_util::StreamExt as _;
use periapt_host_api::Revision;
use periapt_log::{LEADERSHIP_TTL, Log, LogError, Term};
use periapt_log_etcd::testing::TestEtcd;
use tokio::time::Instant;

use crate::fixture::{appended, leading, opened, opened_patiently, options, texts, within};

#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_is_kept_for_as_long_as_it_is_renewed() {
    let etcd = TestEtcd::start(1);
    let options = options(&etcd);
    let (one, two) = (opened_patiently(&options).await, opened_patiently(&options).await);
    let first = leading(&one, "one").await;
    let mut waiting = two.acquire(crate::fixture::announcement("two"));
    let until = Instant::now() + 2 * LEADERSHIP_TTL;
    tokio::select! {
        taken = &mut waiting => panic!("two controllers lead: {taken:?}"),
        () = first.lost() => panic!("the leadership was lost"),
        () = tokio::time::sleep_until(until) => {}
    }
    assert_eq!(one.confirm(first.term()).await, Ok(()));
    drop(first);
    let second = within(waiting).await.unwrap();
    assert_eq!(second.term(), Term(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_candidate_that_withdraws_leaves_nothing_behind() {
    let etcd = TestEtcd::start(1);
    let log = opened_patiently(&options(&etcd)).await;
    let first = leading(&log, "one").await;
    let mut waiting = log.acquire(crate::fixture::announcement("two"));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(waiting);
    drop(first);
    assert_eq!(leading(&log, "three").await.term(), Term(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leadership_survives_the_death_of_any_server() {
    let mut etcd = TestEtcd::start(3);
    let log = opened(&etcd).await;
    let leadership = leading(&log, "one").await;
    for server in 0..3 {
        etcd.kill(server);
        let (mut position, term) = (texts(&log).await.len() as u64, leadership.term());
        // A new leader of etcd renews all leases, but the holder may not have heard of it in time.
        for _ in 0..50 {
            position += 1;
            match appended(&log, leadership.term(), position, "x").await {
                Ok(()) => {}
                Err(error) => panic!("no other controller leads: {error}"),
            }
        }
        assert_eq!(leadership.term(), term);
        etcd.start_server(server);
        // A server that starts takes the processors: the others may not answer in time.
        let confirmed = within(async {
            loop {
                match log.confirm(term).await {
                    Err(error) if error.is_temporary() => {}
                    answer => return answer,
                }
            }
        });
        assert_eq!(confirmed.await, Ok(()), "no other controller leads");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_whose_etcd_is_paused_knows_that_it_may_not_lead() {
    let etcd = TestEtcd::start(1);
    let (one, two) = (opened(&etcd).await, opened(&etcd).await);
    let first = leading(&one, "one").await;
    let mut leaders = two.leaders();
    assert!(within(leaders.next()).await.unwrap().unwrap().is_some());
    etcd.pause(0);
    let begun = Instant::now();
    within(first.lost()).await;
    // It was renewed half a second before, or less.
    assert!(begun.elapsed() <= 2 * LEADERSHIP_TTL, "{:?}", begun.elapsed());
    let error = one.confirm(first.term()).await;
    assert!(matches!(error, Err(LogError::Unavailable(_))), "{error:?}");
    etcd.resume(0);
    let second = leading(&two, "two").await;
    assert_eq!(appended(&one, first.term(), 1, "late").await, Err(LogError::Deposed(first.term())));
    assert_eq!(appended(&two, second.term(), 1, "first").await, Ok(()));
    assert_eq!(two.read(Revision(0), 1).await.unwrap().len(), 1);
}
