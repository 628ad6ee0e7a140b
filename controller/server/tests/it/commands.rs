//! Commands, their results, and reads after them.

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, Refusal,
    api::{ModelSelector, SettingSource},
    command::{Answer, Command, CommandResult, Commands},
    settings::OptionValue,
};

use crate::{
    fixture::{Fixture, application, charm, code_of, deploy, unit},
    raw,
};

#[tokio::test]
async fn q10_a_bad_command_in_a_bulk_call_fails_alone() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let charm = fixture.client.upload_charm(charm()).await.unwrap().digest;
    let expose =
        |name: &str| Command::Expose { application: application(name), endpoints: Default::default() };
    let commands = vec![deploy(charm, 1), expose("nobody"), expose("tiny")];
    let results = fixture.client.commands(&model.selector(), commands).await.unwrap();
    let [CommandResult::Ok(deployed), CommandResult::Error(refusal), CommandResult::Ok(Answer::Done)] =
        results.results.as_slice()
    else {
        panic!("{results:?}");
    };
    assert!(matches!(deployed, Answer::Application { units, .. } if units == &[unit("tiny/0")]));
    assert_eq!(refusal.code, ErrorCode::NotFound);
    let status = fixture.client.status(&model.selector()).await.unwrap();
    assert!(status.applications["tiny"].exposed);
    let info = fixture.client.controller().await.unwrap();
    assert!(info.revision >= results.revision, "what was answered can be read");
    fixture.stop().await;
}

#[tokio::test]
async fn q10_a_command_that_nobody_understands_fails_alone() {
    let fixture = Fixture::start().await;
    let body = r#"{"commands": [{"add-model": {"name": "a"}}, {"add-model": {"name": "A"}}, {"fly": {}}]}"#;
    let json = [("content-type", "application/json")];
    let response = raw::request(fixture.handle.address(), "POST /v1/commands", &json, body).await;
    assert_eq!(response.status, 200);
    let results = response.json()["results"].clone();
    assert!(results[0]["ok"]["model"]["uuid"].is_string(), "{results}");
    assert_eq!(results[1]["error"]["code"], "bad-request");
    assert_eq!(results[2]["error"]["code"], "bad-request");
    assert_eq!(fixture.client.models().await.unwrap().len(), 1);
    fixture.stop().await;
}

#[tokio::test]
async fn a_model_is_found_by_uuid_and_by_name() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let by_name: ModelSelector = "m".parse().unwrap();
    let found = fixture.client.model(&by_name).await.unwrap();
    assert_eq!(found.uuid, model.uuid);
    assert_eq!(fixture.client.model(&model.selector()).await.unwrap(), found);
    let bob = fixture.superuser("bob").await;
    assert_eq!(bob.model(&by_name).await.unwrap().uuid, model.uuid, "the only one of that name");
    let missing: ModelSelector = "n".parse().unwrap();
    assert_eq!(code_of(fixture.client.model(&missing).await), ErrorCode::NotFound);
    fixture.stop().await;
}

#[tokio::test]
async fn a_name_that_two_users_gave_means_the_callers_own() {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("m").await;
    let name = periapt_host_api::ModelName::new("m").unwrap();
    let bob = fixture.superuser("bob").await;
    let add = periapt_host_api::command::ControllerCommand::add_model(name.clone());
    let Answer::Model { uuid } = bob.controller_command(add).await.unwrap() else { panic!() };
    let by_name = ModelSelector::from(name);
    assert_eq!(bob.model(&by_name).await.unwrap().uuid, uuid);
    assert_eq!(fixture.client.model(&by_name).await.unwrap().uuid, model.uuid);
    assert_eq!(code_of(fixture.superuser("eve").await.model(&by_name).await), ErrorCode::Ambiguous);
    fixture.stop().await;
}

#[tokio::test]
async fn an_application_shows_where_its_settings_come_from() {
    let fixture = Fixture::start().await;
    let deployed = fixture.deployed(1).await;
    let model = deployed.model.selector();
    let shown = fixture.client.application(&model, &application("tiny")).await.unwrap();
    assert_eq!((shown.charm.as_str(), shown.units), ("local:tiny-0", vec![unit("tiny/0")]));
    let title = &shown.settings["title"];
    assert_eq!((title.source, &title.value), (SettingSource::User, &Some(OptionValue::Text("mine".into()))));
    assert_eq!(shown.endpoints.len(), 1);
    let reset = Command::SetConfig {
        application: application("tiny"),
        set: BTreeMap::new(),
        reset: vec!["title".into()],
    };
    deployed.model.command(reset).await.unwrap();
    let shown = fixture.client.application(&model, &application("tiny")).await.unwrap();
    assert_eq!(shown.settings["title"].source, SettingSource::Default);
    assert_eq!(code_of(fixture.client.application(&model, &application("x")).await), ErrorCode::NotFound);
    fixture.stop().await;
}

#[tokio::test]
async fn errors_of_each_layer_are_problems() {
    let fixture = Fixture::start().await;
    fixture.add_model("m").await;
    let address = fixture.handle.address();
    for (line, status, code) in [
        ("GET /v1/models/Nö", 400, "bad-request"),
        ("GET /v1/models/none", 404, "not-found"),
        ("GET /v2", 404, "not-found"),
        ("DELETE /v1/models", 405, "not-supported"),
        ("POST /v1/commands", 400, "bad-request"),
        ("GET /v1/models/m/logs?tial=1", 400, "bad-request"),
    ] {
        let line = line.replace('ö', "%C3%B6");
        let response = raw::request(address, &line, &[], "").await;
        assert_eq!(response.status, status, "{line}");
        assert_eq!(response.header("content-type"), Some("application/problem+json"), "{line}");
        let problem = response.json();
        assert_eq!((problem["code"].as_str(), problem["status"].as_u64()), (Some(code), Some(status.into())));
    }
    fixture.stop().await;
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused() {
    let fixture = Fixture::start().await;
    let many = vec![periapt_host_api::command::ControllerCommand::add_model("m".parse().unwrap()); 1_001];
    let refused = fixture.client.controller_commands(many).await;
    assert_eq!(code_of(refused), ErrorCode::BadRequest);
    let huge = "x".repeat(periapt_host_api::api::MAX_COMMANDS_BYTES);
    let command = Command::SetConfig {
        application: application("tiny"),
        set: [("title".to_owned(), huge)].into(),
        reset: vec![],
    };
    let model = fixture.add_model("m").await;
    let error = model.command(command).await.unwrap_err();
    assert!(
        error.refusal().is_some_and(|refusal: &Refusal| refusal.message.contains("larger than")),
        "{error}"
    );
    assert_eq!(fixture.client.models().await.unwrap().len(), 1, "the connection lives on");
    let nothing = serde_json::to_string(&Commands::<Command>::from(vec![])).unwrap();
    let json = [("content-type", "application/json")];
    let response = raw::request(fixture.handle.address(), "POST /v1/commands", &json, &nothing).await;
    assert_eq!(response.json()["results"], serde_json::json!([]));
    fixture.stop().await;
}
