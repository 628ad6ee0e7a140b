//! When early effects leave, and in which order.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{
    Incarnation, Revision, Timestamp,
    agent::{RunnerAnswer, RunnerCommand},
    commit::{EarlyEffect, EarlyItem},
    logs::LogLevel,
};
use tokio::{
    net::UnixStream,
    sync::mpsc,
    time::{Instant, advance, timeout},
};

use crate::{
    clock::BootTime,
    protocol::{
        Call, CallOutcome, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT, Incoming, Outgoing, ToKeeper, ToRunner,
        split,
    },
    runner::{link::Link, outbox::Outbox},
};

/// An outbox, and the items that a controller gets, each batch when it was sent.
struct Post {
    outbox: Arc<Outbox>,
    batches: mpsc::UnboundedReceiver<Vec<EarlyItem>>,
}

/// A controller that answers each call, the first `away` of them with nothing.
fn post(away: usize) -> Post {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (incoming, outgoing): (Incoming<ToRunner>, Outgoing<ToKeeper>) =
        split(ours, FROM_KEEPER_LIMIT, FROM_RUNNER_LIMIT);
    let (link, writer) = Link::new(outgoing);
    tokio::spawn(writer);
    tokio::spawn(hear(incoming, link.clone()));
    let (batch, batches) = mpsc::unbounded_channel();
    tokio::spawn(keep(theirs, batch, away));
    let outbox = Outbox::new("app/0".parse().unwrap(), Incarnation(7), link, 10);
    tokio::spawn(Arc::clone(&outbox).pump());
    Post { outbox, batches }
}

async fn hear(mut incoming: Incoming<ToRunner>, link: Link) {
    while let Ok(Some((message, _))) = incoming.next().await {
        if let ToRunner::Answer { id, outcome } = message {
            link.answered(id, outcome);
        }
    }
}

async fn keep(socket: UnixStream, batches: mpsc::UnboundedSender<Vec<EarlyItem>>, mut away: usize) {
    let (mut incoming, mut outgoing): (Incoming<ToKeeper>, Outgoing<ToRunner>) =
        split(socket, FROM_RUNNER_LIMIT, FROM_KEEPER_LIMIT);
    while let Ok(Some((message, _))) = incoming.next().await {
        let ToKeeper::Call { id, call: Call::Command(command) } = message else { continue };
        let RunnerCommand::Early { items, .. } = *command else { panic!("{command:?}") };
        let outcome = if away > 0 {
            away -= 1;
            CallOutcome::Away { message: "nobody answers".to_owned() }
        } else {
            let (answer, revision) = (RunnerAnswer::Done, Revision(1));
            CallOutcome::Answered { answer, revision, sent_at: BootTime::now() }
        };
        let _ = batches.send(items);
        outgoing.send(&ToRunner::Answer { id, outcome }).await.unwrap();
    }
}

fn line(text: &str) -> (Timestamp, EarlyEffect) {
    let module = "unit.app/0.juju-log".to_owned();
    let effect = EarlyEffect::Log { level: LogLevel::Info, module, message: text.to_owned() };
    (Timestamp::UNIX_EPOCH, effect)
}

fn numbers(items: &[EarlyItem]) -> Vec<u64> {
    items.iter().map(|item| item.number).collect()
}

#[tokio::test(start_paused = true)]
async fn what_no_commit_takes_along_is_sent_after_fifty_milliseconds() {
    let mut post = post(0);
    let since = Instant::now();
    post.outbox.push([line("one")]);
    advance(Duration::from_millis(30)).await;
    post.outbox.push([line("two")]);
    let batch = post.batches.recv().await.unwrap();
    assert_eq!(numbers(&batch), [11, 12]);
    let waited = since.elapsed().as_millis();
    assert!((50..60).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_commit_takes_along_what_waits_and_a_refused_one_gives_it_back() {
    let mut post = post(0);
    post.outbox.push([line("one"), line("two")]);
    let sender = post.outbox.sender().await;
    let taken = sender.take().await;
    assert_eq!(numbers(&taken), [11, 12]);
    assert!(timeout(Duration::from_secs(1), post.batches.recv()).await.is_err());
    post.outbox.push([line("three")]);
    sender.put_back(taken);
    drop(sender);
    assert_eq!(numbers(&post.batches.recv().await.unwrap()), [11, 12, 13]);
}

#[tokio::test(start_paused = true)]
async fn nothing_passes_what_was_sent_before_it() {
    let mut post = post(3);
    post.outbox.push([line("one")]);
    let first = post.batches.recv().await.unwrap();
    post.outbox.push([line("two")]);
    // The commit waits until the controller has what is under way.
    let taken = post.outbox.sender().await.take().await;
    assert_eq!(numbers(&taken), [12]);
    let mut again = Vec::new();
    while let Ok(batch) = post.batches.try_recv() {
        assert_eq!(batch, first);
        again.push(batch);
    }
    assert_eq!(again.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_flood_leaves_in_pieces_and_in_order() {
    let mut post = post(0);
    let text = "x".repeat(16 << 10);
    post.outbox.push((0..100).map(|_| line(&text)));
    let taken = post.outbox.sender().await.take().await;
    let mut all = Vec::new();
    let mut pieces = 1;
    while let Ok(batch) = post.batches.try_recv() {
        all.extend(numbers(&batch));
        pieces += 1;
    }
    all.extend(numbers(&taken));
    assert_eq!(all, (11..111).collect::<Vec<_>>());
    assert!(pieces > 2 && taken.len() < 40, "{pieces} {}", taken.len());
    assert!(post.outbox.is_empty());
}

#[tokio::test(start_paused = true)]
async fn text_that_grows_when_it_is_written_still_fits_into_messages() {
    let mut post = post(0);
    let text = "\u{1}".repeat(16 << 10);
    // All that one hook may log, said at once.
    post.outbox.push((0..64).map(|_| line(&text)));
    let taken = post.outbox.sender().await.take().await;
    let mut all = Vec::new();
    while let Ok(batch) = post.batches.try_recv() {
        assert!(serde_json::to_vec(&batch).unwrap().len() < FROM_RUNNER_LIMIT / 4);
        all.extend(numbers(&batch));
    }
    all.extend(numbers(&taken));
    assert_eq!(all, (11..75).collect::<Vec<_>>());
    assert!(serde_json::to_vec(&taken).unwrap().len() < FROM_RUNNER_LIMIT / 4);
}
