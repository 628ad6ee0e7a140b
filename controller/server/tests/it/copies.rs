//! Blobs of several controllers of one log: each has a copy, whichever of them is lost.

use std::{path::Path, time::Duration};

use periapt_host_api::{Digest, ErrorCode, command::MemberRole};

use crate::{
    fixture::{TIMEOUT, charm, larger_charm},
    set::{Member, Set},
};

/// Returns the number of files of whole blobs below a directory.
fn stored(directory: &Path) -> usize {
    let Ok(entries) = std::fs::read_dir(directory) else { return 0 };
    entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let is_blob = path.file_name().is_some_and(|name| name.len() == 64);
            if path.is_dir() { stored(&path) } else { usize::from(is_blob) }
        })
        .sum()
}

async fn until(mut holds: impl FnMut() -> bool) {
    let waiting = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

/// Waits until a controller knows so many controllers.
async fn knows(member: &Member, count: usize) {
    let waiting = async {
        while member.client.controller().await.unwrap().members.len() != count {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_is_on_two_controllers_before_it_is_answered_and_soon_on_all() {
    let set = Set::new();
    let (one, two, three) = (set.start("one").await, set.start("two").await, set.start("three").await);
    for member in [&one, &two, &three] {
        knows(member, 3).await;
    }
    // The command arrives at a follower.
    let digest = two.client.upload_charm(charm()).await.unwrap().digest;
    let copies = ["one", "two", "three"].map(|name| stored(&set.blobs(name)));
    assert!(copies.iter().sum::<usize>() >= 2, "{copies:?}");
    assert_eq!(copies[1], 1, "{copies:?}");
    until(|| ["one", "two", "three"].iter().all(|name| stored(&set.blobs(name)) == 1)).await;
    // One that lost its disk, or joins later, fetches it as well, and serves it at once.
    let four = set.start("four").await;
    assert_eq!(four.client.fetch_charm(&digest).await.unwrap(), charm());
    let content = Digest::of(b"content");
    let pieces = || futures_util::stream::iter([Ok(bytes::Bytes::from_static(b"content"))]);
    four.client.upload_resource(&content, pieces).await.unwrap();
    until(|| ["one", "two", "three", "four"].iter().all(|name| stored(&set.blobs(name)) == 2)).await;
    for member in [one, two, three, four] {
        assert!(member.client.has_charm(&digest).await.unwrap());
        member.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blob_that_no_other_known_controller_keeps_is_refused() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    knows(&one, 2).await;
    let is_leader = async |member: &Member, name: &str| {
        let members = member.client.controller().await.unwrap().members;
        members.iter().any(|member| member.name == name && member.role == MemberRole::Leader)
    };
    assert!(is_leader(&one, "one").await);
    two.stop().await;
    let refused = one.client.upload_charm(charm()).await.unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::StorageUnavailable, "{refusal}");
    assert!(refusal.message.contains("no other controller keeps a copy: http://127.0.0.1:"), "{refusal}");
    assert!(!one.client.has_charm(&Digest::of(&charm())).await.unwrap(), "it is not registered");
    one.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unused_blob_goes_from_each_controller_once_the_leading_one_has_forgotten_it() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    knows(&two, 2).await;
    let digest = two.client.upload_charm(larger_charm()).await.unwrap().digest;
    until(|| ["one", "two"].iter().all(|name| stored(&set.blobs(name)) == 1)).await;
    for _ in 0..45 {
        set.clock.advance(Duration::from_secs(60));
        tokio::task::yield_now().await;
    }
    assert!(two.client.has_charm(&digest).await.unwrap());
    let waiting = async {
        while ["one", "two"].iter().any(|name| stored(&set.blobs(name)) > 0) {
            set.clock.advance(Duration::from_secs(60));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, waiting).await.unwrap();
    assert!(!one.client.has_charm(&digest).await.unwrap());
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_is_cut_off_from_the_log_deletes_no_blob() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    knows(&two, 2).await;
    // A copy that belongs to no registered charm, as far as the follower knows.
    let content = Digest::of(b"content");
    let pieces = || futures_util::stream::iter([Ok(bytes::Bytes::from_static(b"content"))]);
    two.cut_off();
    two.as_controller().give_copy("resource", &content, pieces).await.unwrap();
    one.client.upload_resource(&content, pieces).await.unwrap();
    assert_eq!(stored(&set.blobs("two")), 1);
    for _ in 0..180 {
        set.clock.advance(Duration::from_secs(60));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(stored(&set.blobs("two")), 1, "it may be registered meanwhile");
    two.reconnect();
    set.settled(&[&one, &two]).await;
    // The leading controller may have forgotten what no model uses, which the other one deletes once it sees that.
    let is_known = one.client.has_resource(&content).await.unwrap();
    assert!(stored(&set.blobs("two")) == 1 || !is_known, "it is registered");
    one.stop().await;
    two.stop().await;
}
