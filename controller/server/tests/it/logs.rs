//! Logs.

use std::sync::Arc;

use futures_util::StreamExt as _;
use periapt_controller::Clock as _;
use periapt_host_api::{
    StoreId,
    agent::{RunnerAnswer, RunnerCommand},
    commit::{EarlyEffect, EarlyItem},
    logs::{LogLevel, LogLine, LogQuery},
    status::WorkloadStatus,
};
use periapt_model::RecordKind;
use periapt_store::{MemoryStore, Order, Store as _, key};

use crate::fixture::{Deployed, Fault, Fixture, TIMEOUT, next, next_where, unit};

pub(crate) struct Logging {
    pub(crate) deployed: Deployed,
    pub(crate) incarnation: periapt_host_api::Incarnation,
    written: u64,
}

impl Logging {
    pub(crate) async fn new(fixture: &Fixture) -> Self {
        let mut deployed = fixture.deployed(2).await;
        next_where(&mut deployed.assignments, |assigned| {
            assigned.models.values().any(|assigned| assigned.units == 2)
        })
        .await;
        let (name, model) = (&deployed.agent.name, &deployed.model.uuid);
        let attached =
            deployed.agent.client.runner_command(name, model, RunnerCommand::Attach).await.unwrap();
        let RunnerAnswer::Attached { incarnation } = attached.0 else { panic!("{attached:?}") };
        Self { deployed, incarnation, written: 0 }
    }

    async fn write(&mut self, name: &str, lines: &[(LogLevel, &str)]) {
        let items = lines.iter().map(|(level, message)| {
            self.written += 1;
            EarlyItem {
                number: self.written,
                at: "2026-01-01T00:00:00Z".parse().unwrap(),
                effect: EarlyEffect::Log {
                    level: *level,
                    module: format!("unit.{name}.juju-log"),
                    message: (*message).to_owned(),
                },
            }
        });
        let early =
            RunnerCommand::Early { unit: unit(name), incarnation: self.incarnation, items: items.collect() };
        let agent = &self.deployed.agent;
        agent.client.runner_command(&agent.name, &self.deployed.model.uuid, early).await.unwrap();
    }

    async fn read(&self, query: LogQuery) -> Vec<String> {
        let client = &self.deployed.model.client;
        let lines = client.logs(&self.deployed.model.selector(), &query).await.unwrap();
        lines.map(|line: Result<LogLine, _>| line.unwrap().message).collect().await
    }
}

#[tokio::test]
async fn lines_are_read_from_the_end_filtered_and_followed() {
    use LogLevel::{Debug, Error, Info};
    let fixture = Fixture::start().await;
    let mut logging = Logging::new(&fixture).await;
    for number in 0..12 {
        let text = format!("line {number}");
        let level = if number % 2 == 0 { Info } else { Debug };
        logging.write(if number < 10 { "tiny/0" } else { "tiny/1" }, &[(level, &text)]).await;
    }

    let all = logging.read(LogQuery { replay: true, ..LogQuery::default() }).await;
    assert_eq!(all.iter().filter(|line| line.starts_with("line ")).count(), 12);
    assert_eq!(logging.read(LogQuery::default()).await.len(), 10, "ten unless said otherwise");
    let tail = LogQuery { tail: Some(2), ..LogQuery::default() };
    assert_eq!(logging.read(tail.clone()).await, ["line 10", "line 11"]);
    let important = LogQuery { level: Some(Info), replay: true, ..LogQuery::default() };
    assert!(logging.read(important).await.iter().all(|line| !line.ends_with(['1', '3', '5'])));
    let first_unit = LogQuery { include: vec!["tiny/0".into()], tail: Some(1), ..LogQuery::default() };
    assert_eq!(logging.read(first_unit).await, ["line 9"]);
    // Lines are filtered, by entity and by module, before they are counted.
    let others = LogQuery { exclude: vec!["tiny/1".into()], tail: Some(1), ..LogQuery::default() };
    assert_eq!(logging.read(others).await, ["line 9"]);
    let module = vec!["unit.tiny/0".to_owned()];
    let of_module = LogQuery { include_module: module.clone(), tail: Some(2), ..LogQuery::default() };
    assert_eq!(logging.read(of_module).await, ["line 8", "line 9"]);
    let without = LogQuery { exclude_module: module, tail: Some(1), ..LogQuery::default() };
    assert_eq!(logging.read(without).await, ["line 11"]);

    let follow = LogQuery { follow: true, ..tail };
    let selector = logging.deployed.model.selector();
    let mut followed = fixture.client.logs(&selector, &follow).await.unwrap();
    assert_eq!(
        (next(&mut followed).await.message, next(&mut followed).await.message),
        ("line 10".into(), "line 11".into())
    );
    logging.write("tiny/1", &[(Error, "new 1"), (Error, "new 2")]).await;
    assert_eq!(
        (next(&mut followed).await.message, next(&mut followed).await.message),
        ("new 1".into(), "new 2".into())
    );
    fixture.stop().await;
}

#[tokio::test]
async fn a_log_that_cannot_be_read_further_ends_with_an_error() {
    let fixture = Fixture::start().await;
    let mut logging = Logging::new(&fixture).await;
    logging.write("tiny/0", &[(LogLevel::Info, "on the first page")]).await;
    fixture.faults.set(Fault::TornRecords);
    let client = &logging.deployed.model.client;
    let replay = LogQuery { replay: true, ..LogQuery::default() };
    // A reset may overtake data that was sent before it, even the beginning of the answer.
    let error = match client.logs(&logging.deployed.model.selector(), &replay).await {
        Ok(lines) => lines.collect::<Vec<Result<LogLine, _>>>().await.pop().unwrap().unwrap_err(),
        Err(error) => error,
    };
    assert!(error.is_temporary(), "{error:?}");
}

#[tokio::test]
async fn a_history_that_grows_fast_is_pruned_before_the_next_round() {
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let mut logging = Logging::new(&fixture).await;
    for _ in 0..4 {
        let items = (0..1_500).map(|_| {
            logging.written += 1;
            let message = format!("{} {}", logging.written, "x".repeat(4_000));
            let effect = EarlyEffect::UnitStatus { status: WorkloadStatus::Active, message };
            EarlyItem { number: logging.written, at: fixture.clock.now(), effect }
        });
        let (items, incarnation) = (items.collect(), logging.incarnation);
        let early = RunnerCommand::Early { unit: unit("tiny/0"), incarnation, items };
        let agent = &logging.deployed.agent;
        agent.client.runner_command(&agent.name, &logging.deployed.model.uuid, early).await.unwrap();
    }
    let name = key::record_prefix(&logging.deployed.model.uuid, RecordKind::Status, "tiny/0");
    let pruned = async {
        // The clock does not move.
        while memory.records(&name, Order::OldestFirst { after: None }, 9_999).await.unwrap().len() > 3_000 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, pruned).await.unwrap();
    fixture.stop().await;
}
