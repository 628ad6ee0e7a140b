//! Tests of runners that die.

use periapt_host_api::{
    Incarnation, OperationId, Timestamp, UnitName,
    agent::RunnerCommand,
    commit::{EarlyEffect, EarlyItem},
    logs::LogLevel,
    status::Life,
};

use super::fake::{PlayedRunner, Scene, frame, unit};
use crate::protocol::{Suspect, ToKeeper};

async fn started(scene: &mut Scene) -> (PlayedRunner, Vec<Suspect>) {
    let mut runner = scene.runner().await;
    let start = runner.attaches().await;
    let watch = scene.watch().await;
    let units = vec![unit("app/0", Life::Alive), unit("app/1", Life::Alive)];
    watch.frames.send(Ok(frame(None, 5, units))).await.unwrap();
    runner.hears_frame().await;
    (runner, start.suspects)
}

fn name(text: &str) -> UnitName {
    text.parse().unwrap()
}

fn begins(unit: &str, operation: u64) -> ToKeeper {
    ToKeeper::HookStarted { unit: name(unit), operation: OperationId(operation) }
}

fn ends(unit: &str, operation: u64) -> ToKeeper {
    ToKeeper::HookEnded { unit: name(unit), operation: OperationId(operation), figures: None }
}

fn suspect(unit: &str, operation: u64, deaths: u32) -> Suspect {
    Suspect { unit: name(unit), operation: OperationId(operation), deaths }
}

#[tokio::test]
async fn hooks_in_flight_are_suspects_of_the_next_runner_until_they_end() {
    let mut scene = Scene::new();
    let (mut runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, []);
    for message in [begins("app/0", 4), begins("app/1", 9), ends("app/0", 4), begins("app/0", 5)] {
        runner.says(message).await;
    }
    drop(runner);
    let (mut runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, [suspect("app/0", 5, 1), suspect("app/1", 9, 1)]);
    runner.says(begins("app/0", 5)).await;
    drop(runner);
    let (mut runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, [suspect("app/1", 9, 1), suspect("app/0", 5, 2)]);
    for message in [begins("app/1", 9), ends("app/1", 9), begins("app/0", 5)] {
        runner.says(message).await;
    }
    drop(runner);
    let (mut runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, [suspect("app/0", 5, 3)]);
    runner.says(ends("app/0", 5)).await;
    drop(runner);
    let (_runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, []);
}

#[tokio::test]
async fn a_runner_that_ends_on_purpose_leaves_no_suspects() {
    let mut scene = Scene::new();
    let (mut runner, _) = started(&mut scene).await;
    runner.says(begins("app/0", 4)).await;
    runner.says(ToKeeper::Ending { reason: "enough".to_owned() }).await;
    drop(runner);
    let (_runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, []);
}

#[tokio::test]
async fn a_unit_that_is_not_here_cannot_be_a_suspect() {
    let mut scene = Scene::new();
    let (mut runner, _) = started(&mut scene).await;
    runner.says(begins("other/0", 4)).await;
    drop(runner);
    let (_runner, suspects) = started(&mut scene).await;
    assert_eq!(suspects, []);
}

#[tokio::test]
async fn what_left_the_hooks_of_a_dead_runner_is_sent_in_its_name() {
    let mut scene = Scene::new();
    let (mut runner, _) = started(&mut scene).await;
    assert_eq!(scene.call().await, [RunnerCommand::Attach]);
    let line = |number| EarlyItem {
        number,
        at: Timestamp::UNIX_EPOCH,
        effect: EarlyEffect::Log {
            level: LogLevel::Info,
            module: "unit.app/0.juju-log".to_owned(),
            message: format!("line {number}"),
        },
    };
    runner.says(begins("app/0", 4)).await;
    let early = |items| RunnerCommand::Early { unit: name("app/0"), incarnation: Incarnation(7), items };
    runner.says(ToKeeper::Noted { unit: name("app/0"), items: vec![line(1), line(2)] }).await;
    runner.calls(early(vec![line(1)])).await;
    assert_eq!(scene.call().await, [early(vec![line(1)])]);
    // The keeper records the answer before it reads the runner's next message.
    runner.hears().await;
    runner.says(ToKeeper::Noted { unit: name("app/0"), items: vec![line(3)] }).await;
    drop(runner);
    assert_eq!(scene.call().await, [early(vec![line(2), line(3)])]);
}

#[tokio::test]
async fn what_left_many_hooks_of_a_dead_runner_is_sent_call_by_call() {
    let mut scene = Scene::new();
    let (mut runner, _) = started(&mut scene).await;
    assert_eq!(scene.call().await, [RunnerCommand::Attach]);
    let effect = EarlyEffect::ApplicationVersion { version: "1".to_owned() };
    let items = vec![EarlyItem { number: 1, at: Timestamp::UNIX_EPOCH, effect }];
    for unit in ["app/0", "app/1"] {
        runner.says(ToKeeper::Noted { unit: name(unit), items: items.clone() }).await;
    }
    drop(runner);
    for unit in ["app/0", "app/1"] {
        let (unit, items) = (name(unit), items.clone());
        assert_eq!(scene.call().await, [RunnerCommand::Early { unit, incarnation: Incarnation(7), items }]);
    }
}
