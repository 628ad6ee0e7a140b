//! The identity of callers, and the requests that each may send.

use periapt_host_api::{AgentName, ErrorCode, agent::RunnerCommand};

use crate::{
    fixture::{Fixture, code_of, host},
    raw,
};

#[tokio::test]
async fn an_agent_speaks_for_itself_alone() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let (one, two) = (fixture.as_agent("one"), AgentName::new("two").unwrap());
    assert_eq!(code_of(one.client.register(&two, &host()).await), ErrorCode::PermissionDenied);
    let attach = one.client.runner_command(&two, &model.uuid, RunnerCommand::Attach).await;
    assert_eq!(code_of(attach), ErrorCode::PermissionDenied);
    let attach = fixture.client.runner_command(&two, &model.uuid, RunnerCommand::Attach).await;
    assert_eq!(code_of(attach), ErrorCode::PermissionDenied, "an operator is no agent");
    fixture.stop().await;
}

#[tokio::test]
async fn an_agent_is_no_operator() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let one = fixture.as_agent("one");
    one.client.register(&one.name, &host()).await.unwrap();
    let denied = ErrorCode::PermissionDenied;
    assert_eq!(code_of(one.client.models().await), denied);
    assert_eq!(code_of(one.client.status(&model.selector()).await), denied);
    let add = periapt_host_api::command::ControllerCommand::add_model("x".parse().unwrap());
    assert_eq!(code_of(one.client.controller_command(add).await), denied);
    fixture.stop().await;
}

#[tokio::test]
async fn web_pages_are_not_answered() {
    let fixture = Fixture::start().await;
    let address = fixture.handle.address();
    for headers in [[("origin", "https://evil.example")], [("host", "evil.example")]] {
        let response = raw::request(address, "GET /v1/models", &headers, "").await;
        assert_eq!(response.json()["code"], "permission-denied");
    }
    let form = [("content-type", "text/plain")];
    let add = r#"{"commands": [{"add-model": {"name": "a"}}]}"#;
    assert_eq!(raw::request(address, "POST /v1/commands", &form, add).await.status, 400);
    assert!(fixture.client.models().await.unwrap().is_empty());
    fixture.stop().await;
}
