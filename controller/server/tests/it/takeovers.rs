//! A keeper that was taken over: with its agent's identity it reaches its own units and nothing else. The same holds for
//! a runner, whose calls the keeper sends on with the names of the agent and of the runner's model.

use futures_util::StreamExt as _;
use periapt_client::{ClientError, NdJson};
use periapt_host_api::{
    Digest, ErrorCode, Incarnation, UnitName,
    agent::{AgentAssignments, LeaseClaim, RunnerAnswer, RunnerCommand},
    command::{Command, CommandResult, Placement},
    commit::{EarlyEffect, EarlyItem, HookEffects, UnitCommit},
    logs::{LogLevel, LogQuery},
    record::UnitRecord,
    secret::{SecretId, SecretKey, SecretRevision},
    view::View,
};

use crate::fixture::{
    Agent, Deployed, Fixture, Model, application, charm, code_of, deploy, next, next_where, unit,
};

/// A model with the unit `tiny/0` on the first host and `tiny/1` on the second, and one on the second alone.
struct Hosts {
    first: Deployed,
    second: Agent,
    other: Model,
    _connected: NdJson<AgentAssignments>,
}

impl Hosts {
    async fn new(fixture: &Fixture) -> Self {
        let mut first = fixture.deployed(1).await;
        first.placed().await;
        let second = fixture.as_agent("two");
        let mut connected = second.connect().await;
        let on_second = |units| Command::AddUnits {
            application: application("tiny"),
            count: units,
            placement: vec![Placement::Agent("two".parse().unwrap())],
            attach_storage: Vec::new(),
        };
        first.model.command(on_second(1)).await.unwrap();
        let other = fixture.add_model("other").await;
        other.command(deploy(Digest::of(&charm()), 0)).await.unwrap();
        other.command(on_second(1)).await.unwrap();
        next_where(&mut connected, |assigned| assigned.models.len() == 2).await;
        Self { first, second, other, _connected: connected }
    }

    /// Attaches an agent's runner of the first model.
    async fn attached(&self, agent: &Agent) -> Incarnation {
        let attach = agent.client.runner_command(&agent.name, &self.first.model.uuid, RunnerCommand::Attach);
        match attach.await.unwrap() {
            (RunnerAnswer::Attached { incarnation }, _) => incarnation,
            other => panic!("{other:?}"),
        }
    }
}

/// Returns all that a runner can ask for in the name of a unit.
fn calls_for(unit: &UnitName, incarnation: Incarnation) -> Vec<RunnerCommand> {
    let forged = EarlyEffect::Log {
        level: LogLevel::Info,
        module: format!("unit.{unit}.juju-log"),
        message: "forged".to_owned(),
    };
    let items = vec![EarlyItem { number: 1, at: "2026-01-01T00:00:00Z".parse().unwrap(), effect: forged }];
    let commit = UnitCommit {
        unit: unit.clone(),
        seq: 0,
        incarnation,
        record: UnitRecord { seq: 1, ..UnitRecord::default() },
        effects: HookEffects::default(),
        transitions: Default::default(),
        leader_term: None,
        early: vec![],
        journal: None,
        uncommitted_usage: Default::default(),
    };
    let claim = LeaseClaim { unit: unit.clone(), application: application("tiny"), seconds: 60 };
    vec![
        RunnerCommand::Early { unit: unit.clone(), incarnation, items },
        RunnerCommand::Claim(claim),
        RunnerCommand::Commit(Box::new(commit)),
    ]
}

#[tokio::test]
async fn a_keeper_commits_for_its_own_units_alone() {
    let fixture = Fixture::start().await;
    let hosts = Hosts::new(&fixture).await;
    let (first, model) = (&hosts.first.agent, &hosts.first.model);
    // The right agent's incarnation is no secret to a keeper that guesses numbers.
    let (own, foreign) = (hosts.attached(first).await, hosts.attached(&hosts.second).await);
    let selector = model.selector();
    let before = fixture.client.unit(&selector, &unit("tiny/1")).await.unwrap();
    for incarnation in [own, foreign] {
        let calls = calls_for(&unit("tiny/1"), incarnation);
        let sent = calls.len();
        let answered = first.client.runner_commands(&first.name, &model.uuid, calls).await.unwrap().results;
        let refused = answered.iter().filter(|result| matches!(result, CommandResult::Error(_))).count();
        assert_eq!(refused, sent, "{answered:?}");
    }
    let after = fixture.client.unit(&selector, &unit("tiny/1")).await.unwrap();
    assert_eq!((before.record, before.leader), (after.record, after.leader));
    let replay = LogQuery { replay: true, ..LogQuery::default() };
    let mut lines = fixture.client.logs(&selector, &replay).await.unwrap();
    while let Some(line) = lines.next().await {
        assert!(!line.unwrap().message.contains("forged"));
    }

    // The same calls for its own unit are carried out: they were refused for their unit.
    let calls = calls_for(&unit("tiny/0"), own);
    let answered = first.client.runner_commands(&first.name, &model.uuid, calls).await.unwrap().results;
    let done = answered.iter().all(|result| matches!(result, CommandResult::Ok(_)));
    assert!(done, "{answered:?}");
    fixture.stop().await;
}

#[tokio::test]
async fn a_keeper_sees_its_own_units_models_alone() {
    let fixture = Fixture::start().await;
    let hosts = Hosts::new(&fixture).await;
    let (first, model) = (&hosts.first.agent, &hosts.first.model);
    let mut view = View::default();
    view.apply(next(&mut hosts.first.watch(None).await).await).unwrap();
    let units: Vec<String> = view.units.keys().map(ToString::to_string).collect();
    assert_eq!(units, ["tiny/0"], "of other hosts' units it sees what their peers see");

    let denied = ErrorCode::PermissionDenied;
    let (client, two, other) = (&first.client, &hosts.second.name, hosts.other.uuid);
    for (agent, model) in [(&first.name, other), (two, other), (two, model.uuid)] {
        assert_eq!(code_of(client.watch(agent, &model, None).await.map(drop)), denied);
        let attach = client.runner_command(agent, &model, RunnerCommand::Attach).await;
        assert_eq!(code_of(attach), denied);
    }
    assert_eq!(code_of(client.assignments(two).await.map(drop)), denied);
    assert_eq!(code_of(client.register(two, &crate::fixture::host()).await), denied);

    // A secret that it names for another host's unit is answered as one for a unit that there is not.
    let key = SecretKey { id: SecretId::from_bytes([1; 12]), revision: SecretRevision(1) };
    let told = async |of: &str| -> ClientError {
        client.unit_secret(&first.name, &model.uuid, &unit(of), &key).await.unwrap_err()
    };
    let (foreign, none) = (told("tiny/1").await, told("tiny/7").await);
    let (foreign, none) = (foreign.refusal().unwrap(), none.refusal().unwrap());
    assert_eq!(
        (foreign.code, foreign.message.replace("tiny/1", "U")),
        (none.code, none.message.replace("tiny/7", "U"))
    );
    fixture.stop().await;
}
