//! Tests of a living runner: its messages from the keeper, and its calls to the controller.

use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering},
};

use periapt_host_api::{
    ErrorCode, Incarnation, Refusal, Revision,
    agent::{RunnerAnswer, RunnerCommand},
    api::WatchPosition,
    commit::{EarlyEffect, EarlyItem},
    status::Life,
    view::{LineNumber, ViewEntity},
};
use tokio::{task::yield_now, time::Instant};

use super::fake::{Scene, frame, obliging, unit};
use crate::{
    keeper::controller::ControllerError,
    protocol::{CALLS_OUTSTANDING, CallOutcome, ToKeeper, ToRunner},
};

fn early(unit: &str, number: u64) -> RunnerCommand {
    let effect = EarlyEffect::ApplicationVersion { version: "8".to_owned() };
    RunnerCommand::Early {
        unit: unit.parse().unwrap(),
        incarnation: Incarnation(7),
        items: vec![EarlyItem { number, at: periapt_host_api::Timestamp::UNIX_EPOCH, effect }],
    }
}

/// Returns a unit that is larger than the socket's buffer.
fn large(name: &str) -> ViewEntity {
    let mut entity = unit(name, Life::Alive);
    if let ViewEntity::Unit(unit) = &mut entity {
        unit.workload_status.message = "x".repeat(1 << 20);
    }
    entity
}

#[tokio::test]
async fn the_view_is_asked_for_only_after_the_runner_attached() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    let start = runner.hears_start().await;
    assert_eq!((start.agent.as_str(), start.suspects.len()), ("host", 0));
    scene.controller.held.send_replace(true);
    runner.calls(RunnerCommand::Attach).await;
    assert_eq!(scene.call().await, [RunnerCommand::Attach]);
    assert!(scene.watches.is_empty());
    scene.controller.held.send_replace(false);
    let watch = scene.watch().await;
    assert_eq!(watch.position, None);
    let first = frame(None, 5, vec![unit("app/0", Life::Alive)]);
    watch.frames.send(Ok(first.clone())).await.unwrap();
    assert!(matches!(
        runner.hears().await,
        ToRunner::Answer { outcome: CallOutcome::Answered { answer: RunnerAnswer::Attached { .. }, .. }, .. }
    ));
    assert_eq!(runner.hears_frame().await, first);
}

#[tokio::test]
async fn a_broken_stream_goes_on_where_it_was() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, Vec::new()))).await.unwrap();
    runner.hears_frame().await;
    watch.frames.send(Err(ControllerError::Away("broken".to_owned()))).await.unwrap();
    let again = scene.watch().await;
    assert_eq!(again.position.map(|position| position.revision), Some(Revision(5)));
}

#[tokio::test]
async fn calls_that_wait_for_others_are_gathered_into_one() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    assert_eq!(scene.call().await.len(), 1);
    scene.controller.held.send_replace(true);
    for number in 0..20 {
        runner.calls(early("app/0", number)).await;
    }
    for _ in 0..4 {
        assert_eq!(scene.call().await.len(), 1);
    }
    // The frame arrives after the calls, so the keeper has read them all.
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, Vec::new()))).await.unwrap();
    runner.hears_frame().await;
    scene.controller.held.send_replace(false);
    let mut rest = 0;
    let mut calls = 0;
    while rest < 16 {
        rest += scene.call().await.len();
        calls += 1;
    }
    assert_eq!(rest, 16);
    assert!(calls < 16, "{calls}");
}

#[tokio::test]
async fn refusals_reach_the_runner_and_those_of_the_moment_are_as_good_as_no_answer() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    for (code, again) in [
        (ErrorCode::Stale, false),
        (ErrorCode::Conflict, false),
        (ErrorCode::StorageUnavailable, true),
        (ErrorCode::OutcomeUnknown, true),
        (ErrorCode::TooManyRequests, true),
    ] {
        scene.controller.answers(Arc::new(move |commands| {
            Ok(commands.iter().map(|_| Err(Refusal::new(code, "no"))).collect())
        }));
        let id = runner.calls(early("app/0", 1)).await;
        match runner.hears().await {
            ToRunner::Answer { id: answered, outcome } => {
                assert_eq!(answered, id);
                assert_eq!(matches!(outcome, CallOutcome::Away { .. }), again, "{code}: {outcome:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    scene.controller.answers(Arc::new(|_| Err(ControllerError::Away("gone".to_owned()))));
    runner.calls(early("app/0", 1)).await;
    let heard = runner.hears().await;
    assert!(matches!(heard, ToRunner::Answer { outcome: CallOutcome::Away { .. }, .. }), "{heard:?}");
}

#[tokio::test]
async fn a_runner_that_does_not_read_gets_its_stream_ended_and_resumed() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    let large = || vec![large("app/0")];
    watch.frames.send(Ok(frame(None, 1, large()))).await.unwrap();
    let mut sent = 1;
    while watch.frames.send(Ok(frame(Some(sent), sent + 1, large()))).await.is_ok() {
        sent += 1;
        assert!(sent < 100, "the stream was never ended");
    }
    let mut last = 0;
    while scene.watches.is_empty() {
        last = runner.hears_frame().await.to.0;
        yield_now().await;
    }
    let again = scene.watch().await;
    let position = again.position.unwrap();
    assert!(position.revision.0 >= last, "{position:?} {last}");
    while last < position.revision.0 {
        last = runner.hears_frame().await.to.0;
    }
    again.frames.send(Ok(frame(Some(last), 500, Vec::new()))).await.unwrap();
    assert_eq!(runner.hears_frame().await.to, Revision(500));
}

#[tokio::test]
async fn a_frame_of_more_lines_than_may_wait_comes_whole() {
    const LINES: u32 = 48;
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    let sent = Arc::new(AtomicU32::new(0));
    let sender = {
        let sent = Arc::clone(&sent);
        tokio::spawn(async move {
            for number in 1..=LINES {
                let mut line = frame(None, 5, vec![large("app/0")]);
                line.line = Some(LineNumber { number, of: LINES });
                if watch.frames.send(Ok(line)).await.is_err() {
                    return;
                }
                sent.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    // Wait until the runner's queue is full.
    while sent.load(Ordering::Relaxed) <= 32 && !sender.is_finished() {
        yield_now().await;
    }
    let mut number = 0;
    while number < LINES {
        tokio::select! {
            biased;
            heard = runner.hears_frame() => {
                number += 1;
                assert_eq!(heard.line.map(|line| line.number), Some(number));
            }
            // The stream may end after its last line.
            again = scene.watch() => {
                let position = again.position.map(|position| position.revision);
                assert_eq!(position, Some(Revision(5)), "the frame was broken off");
            }
        }
    }
    assert_eq!(sent.load(Ordering::Relaxed), LINES);
}

#[tokio::test]
async fn a_frame_that_broke_off_is_asked_for_as_a_whole() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, Vec::new()))).await.unwrap();
    let mut first = frame(Some(5), 9, vec![unit("app/0", Life::Alive)]);
    first.line = Some(LineNumber { number: 1, of: 2 });
    watch.frames.send(Ok(first)).await.unwrap();
    runner.hears_frame().await;
    runner.hears_frame().await;
    watch.frames.send(Err(ControllerError::Away("broken".to_owned()))).await.unwrap();
    assert_eq!(scene.watch().await.position.map(|position| position.revision), Some(Revision(5)));
}

#[tokio::test]
async fn a_gap_is_closed_by_the_whole_view() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, Vec::new()))).await.unwrap();
    runner.hears_frame().await;
    runner.says(ToKeeper::Resync).await;
    assert_eq!(scene.watch().await.position, None::<WatchPosition>);
}

#[tokio::test]
async fn leadership_is_claimed_for_the_living_and_told_to_the_runner() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    let puts = vec![unit("app/0", Life::Alive), unit("app/1", Life::Dying), unit("app/2", Life::Dead)];
    let asked = crate::clock::BootTime::now();
    watch.frames.send(Ok(frame(None, 5, puts))).await.unwrap();
    let claims = scene.claims().await;
    let units: Vec<_> = claims
        .iter()
        .map(|command| match command {
            RunnerCommand::Claim(claim) => (claim.unit.to_string(), claim.seconds),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(units, [("app/0".to_owned(), 60)]);
    let grants = loop {
        if let ToRunner::Grants(grants) = runner.incoming.next().await.unwrap().unwrap().0 {
            break grants;
        }
    };
    assert_eq!(grants.len(), 1);
    assert_eq!((grants[0].unit.to_string(), grants[0].term.0), ("app/0".to_owned(), 3));
    let lasts = grants[0].until.0 - asked.0;
    assert!((60_000..70_000).contains(&lasts), "{lasts}");
}

#[tokio::test(start_paused = true)]
async fn leases_are_renewed_every_fifteen_seconds() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, vec![unit("app/0", Life::Alive)]))).await.unwrap();
    scene.claims().await;
    let first = Instant::now();
    scene.claims().await;
    let waited = first.elapsed().as_secs_f64();
    assert!((14.0..16.0).contains(&waited), "{waited}");
}

#[tokio::test]
async fn a_runner_that_asks_too_much_or_makes_no_sense_is_killed() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    scene.controller.held.send_replace(true);
    for number in 0..=CALLS_OUTSTANDING {
        runner.calls(early("app/0", number as u64)).await;
    }
    runner.killed.cancelled().await;
    scene.controller.held.send_replace(false);

    let mut runner = scene.runner().await;
    runner.hears_start().await;
    let (_, mut nonsense) =
        crate::protocol::split::<ToRunner, &str>(runner_socket(&mut runner).await, 1 << 20, 1 << 20);
    nonsense.send(&"nonsense").await.unwrap();
    runner.killed.cancelled().await;
}

/// Returns the socket of a played runner, which then sends nothing by itself.
async fn runner_socket(runner: &mut super::fake::PlayedRunner) -> tokio::net::UnixStream {
    let (spare, _) = tokio::net::UnixStream::pair().unwrap();
    let (incoming, outgoing) = split_spare(spare);
    let incoming = std::mem::replace(&mut runner.incoming, incoming);
    let outgoing = std::mem::replace(&mut runner.outgoing, outgoing);
    incoming.reunite(outgoing)
}

fn split_spare(
    spare: tokio::net::UnixStream,
) -> (crate::protocol::Incoming<ToRunner>, crate::protocol::Outgoing<ToKeeper>) {
    crate::protocol::split(spare, 1, 1)
}

#[tokio::test(start_paused = true)]
async fn a_runner_that_falls_silent_is_killed_and_another_started() {
    let mut scene = Scene::new();
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let since = Instant::now();
    runner.killed.cancelled().await;
    assert!((55..65).contains(&since.elapsed().as_secs()));
    scene.runner().await.hears_start().await;
}

#[tokio::test]
async fn at_the_end_the_runner_is_told_and_waited_for() {
    let mut scene = Scene::new();
    scene.controller.answers(Arc::new(obliging));
    let mut runner = scene.runner().await;
    runner.attaches().await;
    scene.ended.cancel();
    assert_eq!(runner.hears().await, ToRunner::Exit);
    assert!(!scene.keeper.is_finished());
    drop(runner);
    scene.keeper.await.unwrap();
}
