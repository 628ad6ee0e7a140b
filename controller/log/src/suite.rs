//! The conformance suite of [`Log`], which the tests of each implementation run.
#![expect(clippy::expect_used, clippy::panic, reason = "a test suite says what failed by panicking")]

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    StreamExt as _,
    future::{BoxFuture, Either, select},
};
use periapt_host_api::{Digest, Level, Revision};

use crate::{Announcement, Leadership, Log, LogError, LogLeader, StoredEntry, Term};

/// The timeout of each wait. No log takes this long, even on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A log under test.
pub trait TestedLog {
    /// Returns the access of one more member to the same log.
    fn member(&mut self) -> BoxFuture<'_, Arc<dyn Log>>;
}

/// Runs the whole suite on a fresh, empty log.
///
/// # Panics
/// Panics if the log violates the contract: this is a test.
pub async fn run(mut tested: impl TestedLog) {
    let (one, two) = (tested.member().await, tested.member().await);
    assert_eq!(one.id(), two.id(), "members of one log know it by one id");
    let first = a_leader_appends(&*one, &*two).await;
    let (old, second) = a_leadership_passes_on(&*one, &*two, first).await;
    a_deposed_leader_writes_nothing(&*one, old, &second).await;
    what_is_trimmed_is_gone(&*one, &*two, second).await;
    assert_eq!(tested.member().await.id(), one.id(), "a log keeps its identity");
}

/// One member leads and appends; the other reads and follows.
async fn a_leader_appends(one: &dyn Log, two: &dyn Log) -> Leadership {
    assert_eq!(two.read(Revision(0), 1).await, Ok(vec![]), "a fresh log is empty");
    let mut leaders = two.leaders();
    assert_eq!(next(&mut leaders).await, Ok(None), "no member leads");
    let leadership = acquired(one, "one").await;
    let term = leadership.term();
    assert!(term > Term(0), "terms begin at 1");
    let shown = LogLeader { term, announcement: announcement("one") };
    assert_eq!(until_leader(&mut leaders, term).await, shown, "the others are shown the leader");

    let mut followed = two.follow(Revision(0));
    append(one, term, 1, b"a").await;
    assert_eq!(next(&mut followed).await, Ok(stored(1, b"a")));
    assert_eq!(one.append(term, Revision(1), entry(b"a")).await, Ok(()), "the same again is no error");
    assert_eq!(one.append(term, Revision(1), entry(b"b")).await, Err(LogError::Taken(Revision(1))));
    assert_eq!(one.append(term, Revision(3), entry(b"c")).await, Err(LogError::Taken(Revision(3))));
    append(one, term, 2, b"b").await;
    let large = vec![7; 3 << 20];
    append(one, term, 3, &large).await;
    assert_eq!(next(&mut followed).await, Ok(stored(2, b"b")));
    assert_eq!(next(&mut followed).await, Ok(stored(3, &large)), "an entry may have some MiB");
    assert_eq!(one.confirm(term).await, Ok(()));

    let all = [stored(1, b"a"), stored(2, b"b"), stored(3, &large)];
    assert_eq!(two.read(Revision(0), usize::MAX).await, Ok(all.to_vec()));
    assert_eq!(two.read(Revision(0), 1).await, Ok(all[..1].to_vec()), "at least one");
    assert_eq!(two.read(Revision(2), 1).await, Ok(all[2..].to_vec()));
    assert_eq!(two.read(Revision(3), 1).await, Ok(vec![]));
    assert_eq!(two.end().await, Ok(Revision(3)));
    leadership
}

/// A second member waits for the leadership, and has it when the first gives it up.
async fn a_leadership_passes_on(one: &dyn Log, two: &dyn Log, first: Leadership) -> (Term, Leadership) {
    let old = first.term();
    let mut waiting = two.acquire(announcement("two"));
    let confirmed = one.confirm(old);
    let waiting = match select(&mut waiting, confirmed).await {
        Either::Left((taken, _)) => panic!("a second member leads beside the first: {taken:?}"),
        Either::Right((confirmed, waiting)) => {
            assert_eq!(confirmed, Ok(()));
            waiting
        }
    };
    drop(first);
    let second = within(waiting).await.expect("the leadership is free");
    assert!(second.term() > old, "terms rise");
    let mut leaders = one.leaders();
    assert_eq!(until_leader(&mut leaders, second.term()).await.announcement, announcement("two"));
    (old, second)
}

/// A member whose term is over writes nothing, and can tell what became of its last entry.
async fn a_deposed_leader_writes_nothing(one: &dyn Log, old: Term, second: &Leadership) {
    let deposed = Err(LogError::Deposed(old));
    assert_eq!(one.append(old, Revision(4), entry(b"late")).await, deposed);
    assert_eq!(one.append(old, Revision(3), entry(b"late")).await, deposed);
    assert_eq!(one.append(old, Revision(2), entry(b"b")).await, Ok(()), "its own entry is there");
    assert_eq!(one.confirm(old).await, deposed);
    assert_eq!(one.trim(old, Revision(1)).await, deposed);
    // A term that no member has is no better.
    let unknown = Term(second.term().0 + 1);
    assert_eq!(one.append(unknown, Revision(4), entry(b"late")).await, Err(LogError::Deposed(unknown)));
    assert_eq!(one.read(Revision(3), 1).await, Ok(vec![]), "nothing was written");
}

/// Trimmed entries are gone, and the log goes on.
async fn what_is_trimmed_is_gone(one: &dyn Log, two: &dyn Log, second: Leadership) {
    let term = second.term();
    append(two, term, 4, b"d").await;
    two.trim(term, Revision(2)).await.expect("a leader trims");
    two.trim(term, Revision(1)).await.expect("an earlier position is trimmed already");
    assert_eq!(one.read(Revision(0), 1).await, Err(LogError::Trimmed(Revision(2))));
    assert_eq!(one.read(Revision(1), 1).await, Err(LogError::Trimmed(Revision(2))));
    // A caller that repeats an append in doubt must not be told that it never happened.
    assert_eq!(two.append(term, Revision(2), entry(b"b")).await, Err(LogError::Trimmed(Revision(2))));
    assert_eq!(one.read(Revision(3), 1).await, Ok(vec![stored(4, b"d")]));
    let mut followed = one.follow(Revision(1));
    assert_eq!(next(&mut followed).await, Err(LogError::Trimmed(Revision(2))));
    let mut followed = one.follow(Revision(3));
    assert_eq!(next(&mut followed).await, Ok(stored(4, b"d")));
    two.trim(term, Revision(4)).await.expect("all can be trimmed");
    assert_eq!(one.read(Revision(4), 1).await, Ok(vec![]), "what comes next is not trimmed");
    assert_eq!(one.end().await, Ok(Revision(4)), "the end stays");
    append(two, term, 5, b"e").await;
    assert_eq!(next(&mut followed).await, Ok(stored(5, b"e")));
}

fn announcement(member: &str) -> Announcement {
    let url = format!("https://{member}.example:17070");
    Announcement {
        member: member.to_owned(),
        url,
        level: Level(1),
        keys: Some(Digest::of(b"keys")),
        blobs: None,
    }
}

fn entry(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn stored(position: u64, bytes: &[u8]) -> StoredEntry {
    StoredEntry { position: Revision(position), bytes: entry(bytes) }
}

async fn append(log: &dyn Log, term: Term, position: u64, bytes: &[u8]) {
    assert_eq!(log.append(term, Revision(position), entry(bytes)).await, Ok(()), "a leader appends");
}

async fn acquired(log: &dyn Log, member: &str) -> Leadership {
    within(log.acquire(announcement(member))).await.expect("no member leads")
}

async fn until_leader<S>(leaders: &mut S, term: Term) -> LogLeader
where
    S: futures_util::Stream<Item = Result<Option<LogLeader>, LogError>> + Unpin,
{
    loop {
        match next(leaders).await.expect("the log answers") {
            Some(leader) if leader.term == term => return leader,
            _ => {}
        }
    }
}

async fn next<T>(stream: &mut (impl futures_util::Stream<Item = T> + Unpin)) -> T {
    within(stream.next()).await.expect("the stream goes on")
}

async fn within<T>(wait: impl Future<Output = T>) -> T {
    tokio::time::timeout(TIMEOUT, wait).await.expect("no answer within the timeout")
}
