//! A controller with its data in a directory.

use periapt_client::{ClientError, Identity, RequestOutcome};
use periapt_controller::{BuildError, Listen};
use periapt_host_api::{ErrorCode, command::ControllerCommand};
use periapt_store::StoreError;
use tempfile::TempDir;

use crate::fixture::{charm, in_directory, run};

#[tokio::test]
async fn what_was_answered_is_there_after_a_restart() {
    let directory = TempDir::new().unwrap();
    let (handle, client, running) = run(in_directory(directory.path())).await;
    let before = client.controller().await.unwrap();
    let add = ControllerCommand::add_model("m".parse().unwrap());
    let results = client.controller_commands(vec![add]).await.unwrap();
    let digest = client.upload_charm(charm()).await.unwrap().digest;
    let models = client.models().await.unwrap();
    handle.shutdown();
    running.await.unwrap().unwrap();

    let (handle, client, running) = run(in_directory(directory.path())).await;
    let after = client.controller().await.unwrap();
    assert_eq!((after.uuid, after.store, after.name.as_str()), (before.uuid, before.store, "home"));
    assert!(after.revision >= results.revision);
    assert_eq!(client.models().await.unwrap(), models);
    assert_eq!(client.fetch_charm(&digest).await.unwrap(), charm());
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn two_controllers_cannot_have_one_directory() {
    let directory = TempDir::new().unwrap();
    let (handle, _client, running) = run(in_directory(directory.path())).await;
    match in_directory(directory.path()).build().await {
        Err(BuildError::Store(StoreError::InUse(_))) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("two controllers opened one store"),
    }
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_client_of_nobody_says_so_and_finds_the_controller_when_it_comes() {
    let directory = TempDir::new().unwrap();
    let mut options = in_directory(directory.path());
    let (handle, client, running) = run(in_directory(directory.path())).await;
    client.controller().await.unwrap();
    handle.shutdown();
    running.await.unwrap().unwrap();
    let error = client.controller().await.unwrap_err();
    assert!(
        matches!(error, ClientError::Unreachable { outcome: RequestOutcome::NothingHappened, .. }),
        "{error:?}"
    );
    let text = error.to_string();
    assert!(text.starts_with(&format!("controller at {} does not answer: ", handle.url())), "{text}");
    assert!(text.ends_with("; is it running?"), "{text}");
    assert!(error.is_temporary());

    let patient = periapt_client::Options::new(handle.url(), Identity::Local)
        .with_retry_timeout(crate::fixture::TIMEOUT);
    let patient = periapt_client::Client::new(patient).unwrap();
    let waiting = tokio::spawn(async move { patient.controller().await });
    options.listen = Listen::InProcess(handle.address());
    let (handle, _, running) = run(options).await;
    assert_eq!(waiting.await.unwrap().unwrap(), client.controller().await.unwrap());
    let unknown = client.model(&"none".parse().unwrap()).await.unwrap_err();
    assert_eq!(unknown.refusal().map(|refusal| refusal.code), Some(ErrorCode::NotFound));
    handle.shutdown();
    running.await.unwrap().unwrap();
}
