//! The controller's background work, and the calls of runners.

use std::time::Duration;

use periapt_host_api::{
    ErrorCode, Incarnation,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    api::FRAME_LINE_BYTES,
    command::{Command, CommandResult},
    commit::UnitCommit,
    record::UnitRecord,
    state::MAX_VALUE_BYTES,
    view::{FrameLines, View},
};

use crate::fixture::{Deployed, Fixture, application, code_of, deploy, next, next_where, unit};

impl Deployed {
    async fn attach(&self) -> Incarnation {
        let attach = RunnerCommand::Attach;
        let answer = self.agent.client.runner_command(&self.agent.name, &self.model.uuid, attach).await;
        match answer.unwrap() {
            (RunnerAnswer::Attached { incarnation }, _) => incarnation,
            other => panic!("{other:?}"),
        }
    }

    fn commit(&self, incarnation: Incarnation, seq: u64) -> UnitCommit {
        UnitCommit {
            unit: unit("tiny/0"),
            seq,
            incarnation,
            record: UnitRecord { seq: seq + 1, ..UnitRecord::default() },
            effects: Default::default(),
            transitions: Default::default(),
            leader_term: None,
            early: vec![],
            journal: None,
            uncommitted_usage: Default::default(),
        }
    }
}

#[tokio::test]
async fn a_view_that_is_too_large_for_a_line_comes_in_lines_and_is_whole() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    deployed.placed().await;
    let incarnation = deployed.attach().await;
    for seq in 0..12 {
        let mut commit = deployed.commit(incarnation, seq);
        for half in ["a", "b"] {
            // Each of these characters takes six bytes in a line.
            let value = "\u{1}".repeat(MAX_VALUE_BYTES);
            commit.effects.state.insert(format!("{half}{seq}"), Some(value));
        }
        let command = RunnerCommand::Commit(Box::new(commit));
        let committed =
            deployed.agent.client.runner_command(&deployed.agent.name, &deployed.model.uuid, command).await;
        committed.unwrap();
    }
    let client = &deployed.agent.client;
    let mut lines = client.watch_lines(&deployed.agent.name, &deployed.model.uuid, None).await.unwrap();
    let (mut gathered, mut count) = (FrameLines::default(), 0);
    let frame = loop {
        let line = next(&mut lines).await;
        count += 1;
        assert!(serde_json::to_vec(&line).unwrap().len() < FRAME_LINE_BYTES + 1_000);
        if let Some(frame) = gathered.take(line).unwrap() {
            break frame;
        }
    };
    assert!(count > 2, "{count}");
    let mut view = View::default();
    view.apply(frame).unwrap();
    assert_eq!(view.states.len(), 24);
    assert_eq!(view, deployed.view().await);
    fixture.stop().await;
}

#[tokio::test]
async fn a_unit_is_placed_on_the_agent_that_is_there() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let charm = fixture.client.upload_charm(crate::fixture::charm()).await.unwrap().digest;
    model.command(deploy(charm, 2)).await.unwrap();
    let shown = fixture.client.unit(&model.selector(), &unit("tiny/1")).await.unwrap();
    assert_eq!((shown.machine, shown.agent), (None, None));

    let agent = fixture.as_agent("one");
    let mut assignments = agent.connect().await;
    let assigned = next_where(&mut assignments, |assigned| {
        assigned.models.get(&model.uuid).is_some_and(|assigned| assigned.units == 2)
    })
    .await;
    assert_eq!(assigned.models[&model.uuid].charms, [charm]);
    let shown = fixture.client.unit(&model.selector(), &unit("tiny/1")).await.unwrap();
    assert_eq!((shown.agent, shown.address.as_deref()), (Some(agent.name.clone()), Some("10.0.0.1")));
    assert_eq!(fixture.client.machines(&model.selector()).await.unwrap().len(), 2);
    assert_eq!(fixture.client.agents().await.unwrap()[0].units, 2);

    let remove = Command::RemoveApplication {
        application: application("tiny"),
        force: None,
        storage: Default::default(),
    };
    model.command(remove).await.unwrap();
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();
    next_where(&mut status, |status| status.applications.is_empty()).await;
    next_where(&mut assignments, |assigned| assigned.models.is_empty()).await;
    fixture.stop().await;
}

#[tokio::test]
async fn an_agent_whose_streams_end_is_gone_after_a_while() {
    let fixture = Fixture::start().await;
    let agent = fixture.as_agent("one");
    let connected = agent.connect().await;
    let alive = async || fixture.client.agents().await.unwrap()[0].alive;
    fixture.clock.advance(Duration::from_secs(3_600));
    assert!(alive().await, "as long as its stream is open");
    drop(connected);
    let model = fixture.add_model("m").await;
    // The end of a stream takes time on the network, while the test's clock stands still.
    while alive().await {
        fixture.clock.advance(Duration::from_secs(31));
        fixture.client.model(&model.selector()).await.unwrap();
    }
    let _again = agent.connect().await;
    while !alive().await {}
    fixture.stop().await;
}

#[tokio::test]
async fn a_commit_sent_twice_happens_once() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(1).await;
    next_where(&mut deployed.assignments, |assigned| !assigned.models.is_empty()).await;
    let incarnation = deployed.attach().await;
    let (client, name, model) = (&deployed.agent.client, &deployed.agent.name, &deployed.model.uuid);
    let commit = || RunnerCommand::Commit(Box::new(deployed.commit(incarnation, 0)));
    let first = client.runner_command(name, model, commit()).await.unwrap();
    let second = client.runner_command(name, model, commit()).await.unwrap();
    assert_eq!(first.0, RunnerAnswer::Done);
    assert_eq!(first, second, "the same answer, to be read at the same revision");

    let mut other = deployed.commit(incarnation, 0);
    other.record.status_set = true;
    let other = RunnerCommand::Commit(Box::new(other));
    let next = RunnerCommand::Commit(Box::new(deployed.commit(incarnation, 1)));
    let results = client.runner_commands(name, model, vec![other, next]).await.unwrap();
    assert!(matches!(&results.results[0], CommandResult::Error(refusal) if refusal.code == ErrorCode::Stale));
    assert_eq!(results.results[1], CommandResult::Ok(RunnerAnswer::Done));

    deployed.attach().await;
    let revoked = RunnerCommand::Commit(Box::new(deployed.commit(incarnation, 2)));
    assert_eq!(code_of(client.runner_command(name, model, revoked).await), ErrorCode::Stale);
    fixture.stop().await;
}

#[tokio::test]
async fn leadership_goes_on_when_its_lease_lapses() {
    let fixture = Fixture::start().await;
    let mut deployed = fixture.deployed(2).await;
    next_where(&mut deployed.assignments, |assigned| {
        assigned.models.values().any(|assigned| assigned.units == 2)
    })
    .await;
    let claim = async |name: &str| {
        let claim = LeaseClaim { unit: unit(name), application: application("tiny"), seconds: 60 };
        let claim = RunnerCommand::Claim(claim);
        let answer = deployed.agent.client.runner_command(&deployed.agent.name, &deployed.model.uuid, claim);
        answer.await.unwrap().0
    };
    assert!(matches!(claim("tiny/0").await, RunnerAnswer::Granted { .. }));
    assert!(matches!(claim("tiny/1").await, RunnerAnswer::Held { .. }));
    let leads =
        async |name: &str| fixture.client.unit(&deployed.model.selector(), &unit(name)).await.unwrap().leader;
    assert!(leads("tiny/0").await);
    fixture.clock.advance(Duration::from_secs(30));
    assert!(matches!(claim("tiny/0").await, RunnerAnswer::Granted { .. }));
    fixture.clock.advance(Duration::from_secs(45));
    assert!(matches!(claim("tiny/1").await, RunnerAnswer::Held { .. }), "it was renewed");
    fixture.clock.advance(Duration::from_secs(19));
    // Either the controller has already taken leadership away, or the claim finds the lease expired.
    assert!(matches!(claim("tiny/1").await, RunnerAnswer::Granted { .. }));
    assert!(leads("tiny/1").await && !leads("tiny/0").await);
    fixture.stop().await;
}
