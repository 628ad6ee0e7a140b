//! Requests with an id: sent again, they are carried out once.

use std::sync::Arc;

use periapt_client::{Client, Identity, Options};
use periapt_host_api::{
    StoreId,
    command::{Answer, Command, ControllerCommand},
    status::FullStatus,
    user::{NewUser, UseRegistration},
};
use periapt_store::MemoryStore;
use serde_json::{Value, json};

use crate::{
    cutting::CuttingProxy,
    fixture::{Fault, Fixture, Model, TIMEOUT, application, next_where, unit},
    raw,
};

const ID: &str = "4f0c8f5e-6f0a-4f39-9a41-1f2a53b0c001";

fn add_unit() -> Command {
    let (placement, attach_storage) = (Vec::new(), Vec::new());
    Command::AddUnits { application: application("tiny"), count: 1, placement, attach_storage }
}

/// Sends commands to a model as `curl` does.
async fn post(fixture: &Fixture, model: &Model, id: Option<&str>, commands: Value) -> raw::Response {
    let mut headers = vec![("content-type", "application/json")];
    headers.extend(id.map(|id| ("Periapt-Request-Id", id)));
    let line = format!("POST /v1/models/{}/commands", model.uuid);
    let body = json!({ "commands": commands }).to_string();
    raw::request(fixture.handle.address(), &line, &headers, &body).await
}

fn add_units_json(count: u32) -> Value {
    json!({ "add-units": { "application": "tiny", "count": count } })
}

async fn units(fixture: &Fixture, model: &Model) -> usize {
    unit_count(&fixture.client.status(&model.selector()).await.unwrap())
}

fn unit_count(status: &FullStatus) -> usize {
    status.applications["tiny"].units.len()
}

/// Returns the number of entries of the audit log with this act.
async fn audited(fixture: &Fixture, act: &str) -> usize {
    let entries = fixture.client.audit(None).await.unwrap().entries;
    entries.iter().filter(|entry| entry.request.act == act).count()
}

#[tokio::test]
async fn the_same_header_twice_is_one_unit_one_answer_and_one_entry_of_the_audit_log() {
    let fixture = Fixture::start().await;
    let model = fixture.deployed(1).await.model;
    let commands = json!([add_units_json(1), { "fly": {} }, add_units_json(2)]);
    let first = post(&fixture, &model, Some(ID), commands.clone()).await;
    assert_eq!(first.status, 200);
    assert_eq!(first.json()["results"][0], json!({ "ok": { "units": { "units": ["tiny/1"] } } }));
    let again = post(&fixture, &model, Some(ID), commands.clone()).await;
    assert_eq!(again.json()["results"], first.json()["results"]);
    assert_eq!(units(&fixture, &model).await, 4);
    assert_eq!(audited(&fixture, "add-units").await, 2);

    let other = post(&fixture, &model, Some(ID), json!([add_units_json(2)])).await;
    assert_eq!(other.json()["results"][0]["error"]["code"], "bad-request");
    assert_eq!(units(&fixture, &model).await, 4);

    for _ in 0..2 {
        post(&fixture, &model, None, json!([add_units_json(1)])).await;
    }
    assert_eq!(units(&fixture, &model).await, 6, "without an id each request counts");
    fixture.stop().await;
}

#[tokio::test]
async fn an_id_that_is_no_uuid_is_refused_before_anything_is_written() {
    let fixture = Fixture::start().await;
    let model = fixture.deployed(1).await.model;
    for id in ["", "1", "not-a-uuid", &"9".repeat(5_000)] {
        let refused = post(&fixture, &model, Some(id), json!([add_units_json(1)])).await;
        assert_eq!(refused.status, 400, "{id}");
        let detail = refused.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("periapt-request-id must be a UUID"), "{detail}");
    }
    assert_eq!(units(&fixture, &model).await, 1);
    fixture.stop().await;
}

#[tokio::test]
async fn a_request_that_is_sent_again_after_a_restart_is_one_unit() {
    let memory = Arc::new(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7))));
    let fixture = Fixture::start_on(Arc::clone(&memory)).await;
    let model = fixture.deployed(1).await.model;
    let first = post(&fixture, &model, Some(ID), json!([add_units_json(1)])).await;
    let uuid = model.uuid;
    fixture.stop().await;

    let fixture = Fixture::start_on(memory).await;
    let model = Model { client: fixture.client.clone(), uuid };
    let again = post(&fixture, &model, Some(ID), json!([add_units_json(1)])).await;
    assert_eq!(again.json()["results"], first.json()["results"]);
    assert_eq!(units(&fixture, &model).await, 2);
    fixture.stop().await;
}

/// Returns a client that sends requests again, over a proxy.
async fn over(proxy: &CuttingProxy) -> Client {
    let options = Options::new(&proxy.url, Identity::Local).with_unanswered_retry_timeout(TIMEOUT);
    let client = Client::new(options).unwrap();
    client.controller().await.unwrap();
    client
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_no_second_unit() {
    let fixture = Fixture::start().await;
    let model = fixture.deployed(1).await.model;
    let proxy = CuttingProxy::start(fixture.handle.address()).await;
    let client = over(&proxy).await;
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();

    proxy.withhold();
    let selector = model.selector();
    let adding = tokio::spawn(async move { client.command(&selector, add_unit()).await });
    next_where(&mut status, |status| unit_count(status) == 2).await;
    proxy.cut();
    let answer = adding.await.unwrap().unwrap();
    assert_eq!(answer, Answer::Units { units: vec![unit("tiny/1")] });
    assert_eq!(units(&fixture, &model).await, 2);
    assert_eq!(audited(&fixture, "add-units").await, 1);
    fixture.stop().await;
}

#[tokio::test]
async fn a_client_that_may_not_wait_tells_that_the_outcome_is_unknown() {
    let fixture = Fixture::start().await;
    let model = fixture.deployed(1).await.model;
    let proxy = CuttingProxy::start(fixture.handle.address()).await;
    let client = Client::new(Options::new(&proxy.url, Identity::Local)).unwrap();
    client.controller().await.unwrap();
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();

    proxy.withhold();
    let selector = model.selector();
    let adding = tokio::spawn(async move { client.command(&selector, add_unit()).await });
    next_where(&mut status, |status| unit_count(status) == 2).await;
    proxy.cut();
    let error = adding.await.unwrap().unwrap_err().to_string();
    assert!(error.contains("whether the request was carried out is not known"), "{error}");
    fixture.stop().await;
}

#[tokio::test]
async fn the_token_of_a_new_user_comes_again_with_the_request() {
    let fixture = Fixture::start().await;
    let proxy = CuttingProxy::start(fixture.handle.address()).await;
    let client = over(&proxy).await;
    proxy.withhold();
    let jane = NewUser { name: "jane".parse().unwrap(), display_name: "Jane".into() };
    let adding = tokio::spawn(async move { client.add_user(&jane).await });
    while fixture.client.users().await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    proxy.cut();
    let issued = adding.await.unwrap().unwrap();
    assert_eq!(audited(&fixture, "add-user").await, 1);
    let password = "a long enough password".to_owned().try_into().unwrap();
    let registration = UseRegistration { token: issued.token, password };
    let session = fixture.client.register_user(&registration).await.unwrap();
    assert_eq!(session.user.as_str(), "jane", "the token is the one that the controller knows");
    fixture.stop().await;
}

/// Adds a model while a write fails with an unknown outcome, and returns the number of models.
async fn models_after(fault: Fault) -> usize {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("first").await;
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();
    let options = Options::new(fixture.handle.url(), Identity::Local).with_unanswered_retry_timeout(TIMEOUT);
    let client = Client::new(options).unwrap();
    fixture.faults.set(fault);
    let add = ControllerCommand::add_model("second".parse().unwrap());
    let adding = tokio::spawn(async move { client.controller_command(add).await });
    next_where(&mut status, |status| !status.controller.problems.is_empty()).await;
    fixture.faults.set(Fault::None);
    let answer = adding.await.unwrap().unwrap();
    assert!(matches!(answer, Answer::Model { .. }), "{answer:?}");
    let models = fixture.client.models().await.unwrap().len();
    fixture.stop().await;
    models
}

#[tokio::test]
async fn a_command_whose_write_was_in_doubt_is_carried_out_once() {
    assert_eq!(models_after(Fault::FailBeforeWriting).await, 2);
    assert_eq!(models_after(Fault::FailAfterWriting).await, 2);
}
