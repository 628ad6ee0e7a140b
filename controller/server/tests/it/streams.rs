//! Watchers that misbehave: none slows down commits, or makes the controller hold more than one frame.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use futures_util::StreamExt as _;
use periapt_client::{Client, Identity, NdJson, Options};
use periapt_host_api::{
    Digest, Revision,
    api::WatchPosition,
    view::{Frame, View},
};
use tokio::{
    io::{AsyncReadExt as _, copy},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::{
    fixture::{Deployed, Fixture, TIMEOUT, charm, deploy, next, next_where},
    watches::set_title,
};

/// The size of a change, in bytes, which dominates its frame.
pub(crate) const LARGE: usize = 60_000;
/// The most unread bytes of one stream, and the most frames that fit into them.
const WINDOW: usize = 256 * 1024;
const FRAMES_IN_WINDOW: usize = WINDOW.div_ceil(LARGE);
/// The number of watchers at once.
const MANY: usize = 1_000;

pub(crate) async fn placed(fixture: &Fixture) -> Deployed {
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    deployed
}

/// Commits changes one after the other, and returns the revision at which the last can be read.
pub(crate) async fn commit(deployed: &Deployed, changes: usize, size: usize) -> Revision {
    let mut revision = Revision(0);
    for number in 0..changes {
        let change = set_title(format!("{number}{}", "x".repeat(size)));
        let results = deployed.model.client.commands(&deployed.model.selector(), vec![change]).await.unwrap();
        assert!(matches!(results.results[0], periapt_host_api::command::CommandResult::Ok(_)));
        revision = results.revision;
    }
    revision
}

/// Applies frames until a revision is reached, and returns their number.
async fn catch_up(mirror: &mut View, watch: &mut NdJson<Frame>, revision: Revision) -> usize {
    let mut frames = 0;
    while mirror.revision < revision {
        mirror.apply(next(watch).await).unwrap();
        frames += 1;
    }
    frames
}

#[tokio::test]
async fn what_waits_for_a_watcher_that_never_reads_does_not_grow_with_the_changes() {
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    for changes in [20, 80] {
        let mut silent = Vec::new();
        for _ in 0..8 {
            silent.push(deployed.watch(None).await);
        }
        let revision = commit(&deployed, changes, LARGE).await;
        for watch in &mut silent {
            let mut mirror = View::default();
            let frames = catch_up(&mut mirror, watch, revision).await;
            // The initial frame, the frames that fill the window, the one frame that did not fit, and the frame that
            // leads to the end.
            assert!(frames <= 1 + FRAMES_IN_WINDOW + 1 + 1, "{frames} frames for {changes} changes");
            assert_eq!(mirror, deployed.view().await);
        }
    }
    fixture.stop().await;
}

/// Returns the ratio of the times of some commits with and without watchers, each the best of some rounds. There are more
/// rounds while it is not below what is wanted: other processes may have slowed all rounds with watchers.
async fn slowdown<T>(deployed: &Deployed, size: usize, wanted: f64, watchers: impl AsyncFn() -> T) -> f64 {
    const ROUNDS: usize = 4;
    const MOST_ROUNDS: usize = 16;
    const COMMITS: usize = 25;
    let (mut alone, mut watched) = (Duration::MAX, Duration::MAX);
    let timed = async || {
        let started = Instant::now();
        commit(deployed, COMMITS, size).await;
        started.elapsed()
    };
    let mut ratio = f64::INFINITY;
    for round in 1..=MOST_ROUNDS {
        alone = alone.min(timed().await);
        let watchers = watchers().await;
        watched = watched.min(timed().await);
        drop(watchers);
        ratio = watched.as_secs_f64() / alone.as_secs_f64();
        if round >= ROUNDS && ratio < wanted {
            break;
        }
    }
    ratio
}

#[tokio::test]
async fn watchers_that_never_read_do_not_slow_commits() {
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    let slowdown = slowdown(&deployed, LARGE, 3.0, async || {
        let mut silent = Vec::new();
        for _ in 0..100 {
            silent.push(deployed.watch(None).await);
        }
        // The watchers now have as much as they will ever have.
        commit(&deployed, FRAMES_IN_WINDOW + 2, LARGE).await;
        silent
    })
    .await;
    assert!(slowdown < 3.0, "commits take {slowdown:.1} times as long");
    fixture.stop().await;
}

/// Returns another connection of the same agent.
fn connection(fixture: &Fixture, deployed: &Deployed) -> Client {
    Client::new(Options::new(fixture.handle.url(), Identity::Agent(deployed.agent.name.clone()))).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_of_each_kind_all_see_the_end() {
    const CHANGES: usize = 20;
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    let connections: Vec<Client> = (0..4).map(|_| connection(&fixture, &deployed)).collect();
    let (mut late, mut prompt, mut gone) = (Vec::new(), JoinSet::new(), Vec::new());
    let wanted = tokio::sync::watch::Sender::new(None::<Revision>);
    for number in 0..MANY {
        let client = &connections[number % connections.len()];
        let mut watch = client.watch(&deployed.agent.name, &deployed.model.uuid, None).await.unwrap();
        match number / connections.len() % 3 {
            0 => late.push(watch),
            1 => gone.push(watch),
            _ => {
                let (mut mirror, mut wanted) = (View::default(), wanted.subscribe());
                prompt.spawn(async move {
                    let mut frames = 0;
                    loop {
                        tokio::select! {
                            frame = next(&mut watch) => {
                                mirror.apply(frame).unwrap();
                                frames += 1;
                            }
                            _ = wanted.wait_for(|wanted| wanted.is_some_and(|at| mirror.revision >= at)) => {
                                return (mirror, frames);
                            }
                        }
                    }
                });
            }
        }
    }
    commit(&deployed, CHANGES / 2, 10).await;
    drop(gone);
    let revision = commit(&deployed, CHANGES / 2, 10).await;
    wanted.send_replace(Some(revision));
    let view = deployed.view().await;
    for (mirror, frames) in prompt.join_all().await {
        assert_eq!(mirror, view);
        assert!(frames <= CHANGES + 1, "{frames} frames");
    }
    for mut watch in late {
        let mut mirror = View::default();
        let frames = catch_up(&mut mirror, &mut watch, revision).await;
        assert_eq!(mirror, view);
        assert!(frames <= CHANGES + 1, "{frames} frames");
    }
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watchers_do_not_slow_the_commits_of_other_models() {
    let fixture = Fixture::start().await;
    let mut deployed = placed(&fixture).await;
    let other = fixture.add_model("other").await;
    // An agent watches the models that it has units of.
    other.command(deploy(Digest::of(&charm()), 1)).await.unwrap();
    next_where(&mut deployed.assignments, |assigned| assigned.models.contains_key(&other.uuid)).await;
    let connections: Vec<Client> = (0..4).map(|_| connection(&fixture, &deployed)).collect();
    let watchers = async || {
        let mut reading = JoinSet::new();
        for number in 0..MANY {
            let client = &connections[number % connections.len()];
            let mut watch = client.watch(&deployed.agent.name, &other.uuid, None).await.unwrap();
            next(&mut watch).await;
            reading.spawn(async move { while watch.next().await.is_some() {} });
        }
        reading
    };
    let elsewhere = slowdown(&deployed, 10, 12.0, watchers).await;
    // The watchers are woken, see that nothing concerns them, and wait again.
    assert!(elsewhere < 12.0, "commits take {elsewhere:.1} times as long");
    fixture.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_prompt_watchers_of_one_model_leave_its_commits_their_turn() {
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    let connections: Vec<Client> = (0..4).map(|_| connection(&fixture, &deployed)).collect();
    let watchers = async || {
        let mut reading = JoinSet::new();
        for number in 0..MANY {
            let client = &connections[number % connections.len()];
            let mut watch = client.watch(&deployed.agent.name, &deployed.model.uuid, None).await.unwrap();
            next(&mut watch).await;
            reading.spawn(async move { while watch.next().await.is_some() {} });
        }
        reading
    };
    let slowdown = slowdown(&deployed, 10, 40.0, watchers).await;
    // Readers and controller share two threads here, and reading a frame costs as much as sending it.
    assert!(slowdown < 40.0, "commits take {slowdown:.1} times as long");
    fixture.stop().await;
}

/// Starts a proxy to the controller that closes each connection after so many bytes from it, and returns its URL.
async fn cut_after(controller: SocketAddr, bytes: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut controller = TcpStream::connect(controller).await.unwrap();
        let (mut from_client, mut to_client) = client.split();
        let (from_controller, mut to_controller) = controller.split();
        let mut down = from_controller.take(bytes);
        tokio::select! {
            // Either direction may fail: the other end may be gone.
            _ = copy(&mut from_client, &mut to_controller) => {}
            _ = copy(&mut down, &mut to_client) => {}
        }
    });
    url
}

#[tokio::test]
async fn a_watcher_that_is_cut_off_at_any_byte_goes_on_from_where_it_was() {
    let fixture = Fixture::start().await;
    let deployed = placed(&fixture).await;
    let first = next(&mut deployed.watch(None).await).await;
    let mut before = View::default();
    let start = WatchPosition { store: first.store, revision: first.to };
    before.apply(first).unwrap();
    commit(&deployed, 1, 10).await;
    let after = deployed.view().await;
    assert_ne!(before, after);

    let mut bytes = 0;
    loop {
        let url = cut_after(fixture.handle.address(), bytes).await;
        let client = Client::new(Options::new(url, Identity::Agent(deployed.agent.name.clone()))).unwrap();
        let mut mirror = before.clone();
        if let Ok(mut watch) = client.watch(&deployed.agent.name, &deployed.model.uuid, Some(start)).await
            && let Some(Ok(frame)) = tokio::time::timeout(TIMEOUT, watch.next()).await.unwrap()
        {
            mirror.apply(frame).unwrap();
            assert_eq!(mirror, after, "a frame is whole, or not there");
            break;
        }
        assert_eq!(mirror, before);
        let frame = next(&mut deployed.watch(Some(start)).await).await;
        assert_eq!(frame.from, Some(start.revision), "only what it missed");
        mirror.apply(frame).unwrap();
        assert_eq!(mirror, after);
        bytes += 1;
    }
    assert!(bytes > 300, "a frame and what comes before it are more than {bytes} bytes");

    // The cut watchers left no stream open.
    drop(deployed.assignments);
    while fixture.client.agents().await.unwrap()[0].alive {
        fixture.clock.advance(Duration::from_secs(31));
    }
    fixture.stop().await;
}
