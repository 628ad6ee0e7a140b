//! Overload: commands share syncs, and are refused beyond the queue's bound.

use periapt_host_api::{
    ErrorCode,
    agent::RunnerCommand,
    command::{Command, CommandResult},
    commit::{HookEffects, UnitCommit},
    record::UnitRecord,
};
use tokio::task::JoinSet;

use crate::{
    fixture::{Fixture, TIMEOUT, application, code_of, unit},
    logs::Logging,
};

/// Waits until the writer is in a blocked write.
async fn hold(fixture: &Fixture) -> JoinSet<()> {
    fixture.faults.hold(true);
    let before = fixture.faults.writes();
    let client = fixture.client.clone();
    let mut held = JoinSet::new();
    held.spawn(async move {
        let add = periapt_host_api::command::ControllerCommand::add_model("held".parse().unwrap());
        client.controller_command(add).await.unwrap();
    });
    while fixture.faults.writes() == before {
        tokio::task::yield_now().await;
    }
    held
}

#[tokio::test]
async fn commands_that_wait_together_are_written_together() {
    const COMMANDS: usize = 50;
    let fixture = Fixture::start().await;
    let mut tasks = hold(&fixture).await;
    let before = fixture.faults.writes();
    for number in 0..COMMANDS {
        let client = fixture.client.clone();
        tasks.spawn(async move {
            let name = format!("m{number}").parse().unwrap();
            let add = periapt_host_api::command::ControllerCommand::add_model(name);
            client.controller_command(add).await.unwrap();
        });
    }
    // Each answer came after the commands before it on the same connection had arrived.
    for _ in 0..COMMANDS {
        fixture.client.controller().await.unwrap();
    }
    fixture.faults.hold(false);
    tokio::time::timeout(TIMEOUT, tasks.join_all()).await.unwrap();
    assert_eq!(fixture.client.models().await.unwrap().len(), COMMANDS + 1);
    let writes = fixture.faults.writes() - before;
    assert!(writes <= 10, "{writes} syncs for {COMMANDS} commands");
    fixture.stop().await;
}

#[tokio::test]
async fn past_the_bound_a_model_is_told_to_try_again_and_others_are_not() {
    let fixture = Fixture::start().await;
    let busy = fixture.add_model("busy").await;
    let other = fixture.add_model("other").await;
    let held = hold(&fixture).await;
    let mut bulks = JoinSet::new();
    for _ in 0..6 {
        let (client, model) = (fixture.client.clone(), busy.selector());
        let commands =
            vec![
                Command::Expose { application: application("nobody"), endpoints: Default::default() };
                1_000
            ];
        bulks.spawn(async move { client.commands(&model, commands).await });
    }
    // While the writer is blocked, only refusals can be answered.
    for _ in 0..2 {
        let first = tokio::time::timeout(TIMEOUT, bulks.join_next()).await.unwrap().unwrap().unwrap();
        assert_eq!(code_of(first), ErrorCode::TooManyRequests);
    }
    let (client, model) = (fixture.client.clone(), other.selector());
    let taken = tokio::spawn(async move {
        client
            .commands(
                &model,
                vec![Command::Expose { application: application("nobody"), endpoints: Default::default() }],
            )
            .await
    });
    fixture.faults.hold(false);
    assert_eq!(taken.await.unwrap().unwrap().results.len(), 1);
    for bulk in bulks.join_all().await {
        assert_eq!(bulk.unwrap().results.len(), 1_000);
    }
    held.join_all().await;
    fixture.stop().await;
}

#[tokio::test]
async fn a_command_that_writes_more_than_a_store_takes_is_refused_alone() {
    let fixture = Fixture::start().await;
    let logging = Logging::new(&fixture).await;
    let commit = |seq, value: String| {
        // Bytes that take six each in stored form: within a hook's bounds, and beyond those of a commit.
        let state = (0..4).map(|key| (format!("k{key}"), Some(value.clone()))).collect();
        RunnerCommand::Commit(Box::new(UnitCommit {
            unit: unit("tiny/0"),
            seq,
            incarnation: logging.incarnation,
            record: UnitRecord { seq: seq + 1, ..UnitRecord::default() },
            effects: HookEffects { state, ..HookEffects::default() },
            transitions: Default::default(),
            leader_term: None,
            early: vec![],
            journal: None,
            uncommitted_usage: Default::default(),
        }))
    };
    let (small, large) = ("a".to_owned(), "\u{1}".repeat(60 << 10));
    let commands = vec![commit(0, small.clone()), commit(1, large), commit(1, small)];
    let deployed = &logging.deployed;
    let sent = deployed.agent.client.runner_commands(&deployed.agent.name, &deployed.model.uuid, commands);
    let results = sent.await.unwrap().results;
    let [CommandResult::Ok(_), CommandResult::Error(refusal), CommandResult::Ok(_)] = results.as_slice()
    else {
        panic!("{results:?}");
    };
    assert_eq!(refusal.code, ErrorCode::QuotaExceeded);
    assert!(refusal.message.ends_with("bytes at once, at most 1048576 are allowed"), "{refusal}");
    let shown = fixture.client.unit(&deployed.model.selector(), &unit("tiny/0")).await.unwrap();
    assert_eq!(shown.record.seq, 2);
    fixture.stop().await;
}
