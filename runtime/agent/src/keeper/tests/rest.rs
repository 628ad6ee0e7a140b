//! Tests of idle runners.

use std::time::Duration;

use periapt_host_api::{Revision, StoreId, Timestamp, api::WatchPosition, status::Life};
use periapt_uniter::WorkloadsKnown;
use uuid::Uuid;

use super::fake::{OpenedWatch, PlayedRunner, Scene, frame, unit};
use crate::protocol::{ToKeeper, ToRunner};

fn idle(revision: u64, wake_at: Option<Timestamp>) -> ToKeeper {
    let position = WatchPosition { store: StoreId(Uuid::from_u128(9)), revision: Revision(revision) };
    ToKeeper::Idle { position, wake_at, workloads: WorkloadsKnown::default() }
}

async fn settled(scene: &mut Scene) -> (PlayedRunner, OpenedWatch) {
    let mut runner = scene.runner().await;
    runner.attaches().await;
    let watch = scene.watch().await;
    watch.frames.send(Ok(frame(None, 5, vec![unit("app/0", Life::Alive)]))).await.unwrap();
    runner.hears_frame().await;
    (runner, watch)
}

#[tokio::test]
async fn an_idle_runner_exits_and_the_next_change_starts_another() {
    let mut scene = Scene::new();
    let (mut runner, watch) = settled(&mut scene).await;
    runner.says(idle(5, None)).await;
    assert_eq!(runner.hears().await, ToRunner::Exit);
    drop(runner);
    // Heartbeats start no runner. The keeper takes the second one only after the first.
    for revision in 5..9 {
        watch.frames.send(Ok(frame(Some(revision), revision + 1, Vec::new()))).await.unwrap();
    }
    assert!(!scene.has_started_another());
    watch.frames.send(Ok(frame(Some(9), 10, vec![unit("app/1", Life::Alive)]))).await.unwrap();
    let mut next = scene.runner().await;
    let start = next.attaches().await;
    assert_eq!(start.suspects, []);
    assert_eq!(scene.watch().await.position, None, "a new runner has nothing yet");
}

#[tokio::test]
async fn a_runner_that_was_sent_more_than_it_knows_does_not_exit() {
    let mut scene = Scene::new();
    let (mut runner, watch) = settled(&mut scene).await;
    watch.frames.send(Ok(frame(Some(5), 6, vec![unit("app/1", Life::Alive)]))).await.unwrap();
    runner.hears_frame().await;
    runner.says(idle(5, None)).await;
    // The keeper answers in order: if it accepted the offer, Exit would come before the frame.
    watch.frames.send(Ok(frame(Some(6), 7, vec![unit("app/2", Life::Alive)]))).await.unwrap();
    assert_eq!(runner.hears_frame().await.to, Revision(7));
    runner.says(idle(7, None)).await;
    assert_eq!(runner.hears().await, ToRunner::Exit);
}

#[tokio::test]
async fn a_runner_with_a_hook_in_flight_does_not_exit() {
    let mut scene = Scene::new();
    let (mut runner, watch) = settled(&mut scene).await;
    let (unit_name, operation) = ("app/0".parse().unwrap(), periapt_host_api::OperationId(1));
    runner.says(ToKeeper::HookStarted { unit: unit_name, operation }).await;
    runner.says(idle(5, None)).await;
    watch.frames.send(Ok(frame(Some(5), 6, Vec::new()))).await.unwrap();
    assert_eq!(runner.hears_frame().await.to, Revision(6));
}

#[tokio::test]
async fn a_timer_starts_the_runner_again() {
    let mut scene = Scene::new();
    let (mut runner, _watch) = settled(&mut scene).await;
    let wake_at = Timestamp::now() + Duration::from_millis(200);
    runner.says(idle(5, Some(wake_at))).await;
    assert_eq!(runner.hears().await, ToRunner::Exit);
    drop(runner);
    scene.runner().await.hears_start().await;
    assert!(Timestamp::now() >= wake_at);
}
