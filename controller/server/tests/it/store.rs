//! A failing store: no client is told of a success that did not happen, and the controller goes on.

use periapt_host_api::ErrorCode;

use crate::fixture::{Fault, Fixture, code_of, next_where};

#[tokio::test]
async fn a_refused_write_leaves_nothing_and_the_next_succeeds() {
    let fixture = Fixture::start().await;
    let before = fixture.client.controller().await.unwrap();
    fixture.faults.set(Fault::Refuse);
    let add = || periapt_host_api::command::ControllerCommand::add_model("m".parse().unwrap());
    let refused = fixture.client.controller_command(add()).await;
    assert_eq!(code_of(refused), ErrorCode::StorageUnavailable);
    assert!(fixture.client.models().await.unwrap().is_empty());
    let after = fixture.client.controller().await.unwrap();
    assert_eq!(after, before);
    fixture.faults.set(Fault::None);
    fixture.client.controller_command(add()).await.unwrap();
    assert_eq!(fixture.client.models().await.unwrap().len(), 1);
    fixture.stop().await;
}

/// Fails a write with an unknown outcome, and returns the number of models after the store is reopened.
async fn models_after(fault: Fault) -> usize {
    let fixture = Fixture::start().await;
    let model = fixture.add_model("first").await;
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();
    next_where(&mut status, |status| status.controller.problems.is_empty()).await;

    fixture.faults.set(fault);
    let add = |name: &str| periapt_host_api::command::ControllerCommand::add_model(name.parse().unwrap());
    let doubtful = fixture.client.controller_command(add("second")).await.unwrap_err();
    assert_eq!(doubtful.refusal().unwrap().code, ErrorCode::OutcomeUnknown);
    assert!(doubtful.to_string().contains("check whether the request had an effect"), "{doubtful}");
    let told = next_where(&mut status, |status| !status.controller.problems.is_empty()).await;
    assert!(told.controller.problems[0].contains("the store cannot be written"), "{told:?}");
    assert!(!fixture.client.controller().await.unwrap().writable);
    let refused = fixture.client.controller_command(add("third")).await;
    assert_eq!(code_of(refused), ErrorCode::StorageUnavailable);
    assert_eq!(fixture.client.models().await.unwrap().len(), 1, "reading goes on from what was durable");

    fixture.faults.set(Fault::None);
    next_where(&mut status, |status| status.controller.problems.is_empty()).await;
    assert!(fixture.client.controller().await.unwrap().writable);
    let models = fixture.client.models().await.unwrap().len();
    fixture.client.controller_command(add("fourth")).await.unwrap();
    fixture.stop().await;
    models
}

#[tokio::test]
async fn after_a_failed_sync_the_store_is_read_again_and_tells_what_happened() {
    assert_eq!(models_after(Fault::FailBeforeWriting).await, 1);
    assert_eq!(models_after(Fault::FailAfterWriting).await, 2);
}

#[tokio::test]
async fn an_agent_that_stays_connected_is_known_again_after_the_store_was_reopened() {
    let fixture = Fixture::start().await;
    let agent = fixture.as_agent("one");
    let _connected = agent.connect().await;
    let model = fixture.add_model("m").await;
    let mut status = fixture.client.watch_status(&model.selector()).await.unwrap();
    fixture.faults.set(Fault::FailAfterWriting);
    let add = periapt_host_api::command::ControllerCommand::add_model("x".parse().unwrap());
    fixture.client.controller_command(add).await.unwrap_err();
    next_where(&mut status, |status| !status.controller.problems.is_empty()).await;
    fixture.faults.set(Fault::None);
    next_where(&mut status, |status| status.controller.problems.is_empty()).await;
    fixture.clock.advance(std::time::Duration::from_secs(3_600));
    let mut alive = false;
    while !alive {
        alive = fixture.client.agents().await.unwrap()[0].alive;
    }
    fixture.stop().await;
}
