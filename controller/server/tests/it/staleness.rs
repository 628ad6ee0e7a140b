//! A controller that hears nothing from the log shows no old state, says so, and goes on once it is up to date; and one
//! whose clock is far off does not start. Who waits for a controller that is behind.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, Options};
use periapt_host_api::{ErrorCode, ModelName, agent::header, command::ControllerCommand};

use crate::{
    fixture::{ManualClock, TIMEOUT},
    raw,
    set::{LOG, Member, Set},
};

/// Returns a client of a controller that makes one attempt.
fn client(member: &Member) -> Client {
    Client::new(Options::new(member.url(), Identity::Local).with_busy_retry_timeout(Duration::ZERO)).unwrap()
}

async fn add_model(client: &Client, name: &str) {
    client.controller_command(ControllerCommand::add_model(ModelName::new(name).unwrap())).await.unwrap();
}

/// Waits until a controller says if it is stale.
async fn until_stale(client: &Client, stale: bool) {
    let told = async {
        while client.controller().await.unwrap().stale != stale {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, told).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_that_hears_nothing_from_the_log_shows_no_old_state_until_it_does() {
    let set = Set::new();
    let (one, two) = (set.start("one").await, set.start("two").await);
    let (of_one, of_two) = (client(&one), client(&two));
    add_model(&of_two, "a").await;
    assert_eq!(of_two.models().await.unwrap().len(), 1);
    let model = "a".parse().unwrap();
    let mut watched = of_two.watch_status(&model).await.unwrap();
    watched.next().await.unwrap().unwrap();

    two.cut_off();
    add_model(&of_one, "b").await;
    // What it shows may lack the model for a while, and is not shown any more after that.
    until_stale(&of_two, true).await;
    let refused = of_two.models().await.unwrap_err();
    let refusal = refused.refusal().unwrap();
    assert_eq!(refusal.code, ErrorCode::TryAgain, "{refusal}");
    assert!(refusal.message.contains("has not been up to date with its log for"), "{refusal}");
    let ended = async {
        loop {
            match watched.next().await {
                Some(Ok(_)) => {}
                end => return end,
            }
        }
    };
    let end = tokio::time::timeout(TIMEOUT, ended).await.unwrap();
    assert!(matches!(end, Some(Err(_))), "what is broken off does not look complete");
    assert!(of_two.watch_status(&model).await.is_err(), "no stream begins");
    assert!(of_one.models().await.is_ok() && !of_one.controller().await.unwrap().stale);
    two.reconnect();
    until_stale(&of_two, false).await;
    assert_eq!(of_two.models().await.unwrap().len(), 2);
    one.stop().await;
    two.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_without_a_log_is_never_stale() {
    let fixture = crate::fixture::Fixture::start().await;
    let info = fixture.client.controller().await.unwrap();
    assert!(!info.stale && info.members.is_empty());
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_controller_whose_clock_is_far_off_ends_with_a_word_and_serves_nothing() {
    let set = Set::new();
    let one = set.start("one").await;
    set.clock.advance(Duration::from_secs(3_600));
    add_model(&client(&one), "a").await;
    let entries = set.entries();

    let behind = set.ends("two", ManualClock::default()).await;
    assert!(behind.contains("clock is 3600 s behind the last entry of the log"), "{behind}");
    let ahead = ManualClock::default();
    ahead.advance(Duration::from_secs(7_200));
    let ahead = set.ends("three", ahead).await;
    assert!(ahead.contains("clock is 3600 s ahead of that of the controller which leads"), "{ahead}");
    assert_eq!(set.entries(), entries, "neither has written");
    one.stop().await;
}

/// Asks with a session that no controller knows.
async fn asks_as_nobody(address: SocketAddr) -> raw::Response {
    asks_as_nobody_from(Ipv4Addr::LOCALHOST, address).await
}

async fn asks_as_nobody_from(from: Ipv4Addr, address: SocketAddr) -> raw::Response {
    // Whatever it says it saw, it does not wait for that.
    let seen = format!("{}/{}", LOG.0, u64::MAX);
    let headers = [(header::SEEN, &*seen), ("authorization", "Bearer a-session-of-nobody")];
    raw::request_from(from, address, "GET /v1/models", &headers).await
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_that_are_nobody_keep_few_requests_open_while_a_controller_hears_nothing_from_the_log() {
    let set = Set::new();
    let one = set.start("one").await;
    let address = one.handle.address();
    assert_eq!(asks_as_nobody(address).await.status, 401);
    one.cut_off();
    // Each waits as long as a caller may.
    let networks = (1..=5).map(|host| Ipv4Addr::new(127, 0, 0, host));
    let asks = networks
        .flat_map(|from| (0..20).map(move |_| (from, tokio::spawn(asks_as_nobody_from(from, address)))));
    let (mut waited, mut turned_away) = (BTreeMap::<_, usize>::new(), 0);
    for (from, asked) in Vec::from_iter(asks) {
        let answer = asked.await.unwrap();
        assert_eq!(answer.header("periapt-seen"), None, "the state is not told to nobody");
        let message = answer.json()["detail"].as_str().unwrap().to_owned();
        match message.contains("too many callers wait") {
            true => turned_away += 1,
            false => {
                assert_eq!(message, "this controller is behind the others");
                *waited.entry(from).or_default() += 1;
            }
        }
    }
    assert_eq!((waited.values().sum::<usize>(), turned_away), (64, 36));
    assert!(waited.values().all(|of_network| *of_network <= 16), "{waited:?}");
    one.reconnect();
    until_stale(&client(&one), false).await;
    assert_eq!(asks_as_nobody(address).await.status, 401);
    one.client.models().await.unwrap();
    one.stop().await;
}
