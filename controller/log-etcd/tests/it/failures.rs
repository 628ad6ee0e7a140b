//! Servers that die, stop and come back while the log is used.

use std::time::Duration;

use futures_util::StreamExt as _;
use periapt_host_api::Revision;
use periapt_log::{Log, LogError};
use periapt_log_etcd::{EtcdLog, OpenError, testing::TestEtcd};
use tokio::time::Instant;

use crate::fixture::{appended, leading, opened, options, texts, within};

/// The appends before, during and after a failure.
const ROUNDS: u64 = 40;

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_die_or_stop_one_after_the_other_lose_and_double_nothing() {
    let mut etcd = TestEtcd::start(3);
    let (log, other) = (opened(&etcd).await, opened(&etcd).await);
    let leadership = leading(&log, "one").await;
    let mut position = 0;
    let expected = |position: u64| (1..=position).map(|n| format!("entry {n}")).collect::<Vec<_>>();
    let follower = tokio::spawn(async move {
        let mut seen = Vec::new();
        while seen.len() < (6 * ROUNDS) as usize {
            // A stream that ended by an error is begun again, where it was.
            let mut stream = other.follow(Revision(seen.len() as u64));
            while let Some(Ok(entry)) = stream.next().await {
                seen.push(String::from_utf8_lossy(&entry.bytes).into_owned());
                if seen.len() == (6 * ROUNDS) as usize {
                    break;
                }
            }
        }
        seen
    });
    for server in 0..3 {
        for round in 0..2 * ROUNDS {
            match (round, server) {
                (10, 1) => etcd.pause(server),
                (10, _) => etcd.kill(server),
                (ROUNDS, 1) => etcd.resume(server),
                (ROUNDS, _) => etcd.start_server(server),
                _ => {}
            }
            position += 1;
            let answer = appended(&log, leadership.term(), position, &format!("entry {position}")).await;
            assert_eq!(answer, Ok(()), "no other controller leads");
        }
    }
    assert_eq!(texts(&log).await, expected(position));
    assert_eq!(within(follower).await.unwrap(), expected(position));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_notices_a_server_that_has_stopped() {
    let etcd = TestEtcd::start(3);
    let log = opened(&etcd).await;
    let leadership = leading(&log, "one").await;
    // This one knows the server that stops as its first.
    let other = opened(&etcd).await;
    let mut followed = other.follow(Revision(0));
    appended(&log, leadership.term(), 1, "a").await.unwrap();
    assert_eq!(within(followed.next()).await.unwrap().unwrap().bytes, "a");
    etcd.pause(0);
    appended(&log, leadership.term(), 2, "b").await.unwrap();
    let begun = Instant::now();
    let mut next = within(followed.next()).await.unwrap();
    while next.as_ref().is_err_and(LogError::is_temporary) {
        // The others were too slow as well. A stream that ended by an error is begun again, where it was.
        followed = other.follow(Revision(1));
        next = within(followed.next()).await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(next.unwrap().bytes, "b");
    etcd.resume(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_quorum_calls_end_in_time_and_work_again_with_one() {
    let mut etcd = TestEtcd::start(3);
    let log = opened(&etcd).await;
    let leadership = leading(&log, "one").await;
    let term = leadership.term();
    appended(&log, term, 1, "a").await.unwrap();
    etcd.kill(0);
    etcd.kill(1);
    let begun = Instant::now();
    let answers = (
        log.append(term, Revision(2), "b".into()).await,
        log.confirm(term).await,
        log.read(Revision(0), 1).await,
        log.trim(term, Revision(1)).await,
    );
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    let unavailable = |error: Option<LogError>| matches!(error, Some(LogError::Unavailable(_)));
    assert!(unavailable(answers.0.clone().err()), "{answers:?}");
    assert!(unavailable(answers.1.clone().err()), "{answers:?}");
    assert!(unavailable(answers.2.clone().err()), "{answers:?}");
    assert!(unavailable(answers.3.clone().err()), "{answers:?}");
    within(leadership.lost()).await;
    let refused = EtcdLog::open(&options(&etcd)).await.unwrap_err();
    assert!(matches!(refused, OpenError::NoQuorum(_)), "{refused}");
    etcd.start_server(0);
    // No other controller led since, so the entry in doubt has its place.
    assert_eq!(appended(&log, term, 2, "b").await, Ok(()));
    assert_eq!(texts(&log).await, ["a", "b"]);
}
