//! Disks that are full, read-only or damaged: each gives one clear error, acknowledged writes stay, and the
//! controller goes on when it can.

use std::{
    fs,
    io::{ErrorKind, Write as _},
    path::Path,
};

use periapt_client::{Client, ClientError};
use periapt_controller::BuildError;
use periapt_host_api::{
    ErrorCode,
    api::ModelSelector,
    command::{Answer, CommandResult, ControllerCommand},
};
use periapt_store::StoreError;
use tempfile::TempDir;

use crate::{
    file_system::with_file_system,
    fixture::{application, charm, check_helper, code_of, deploy, in_directory, next_where, run},
    watches::set_title,
};

/// Returns the error of a controller that does not start in a directory. `periapt controller run` ends with it.
async fn refused(directory: &Path) -> StoreError {
    match in_directory(directory).build().await {
        Err(BuildError::Store(error)) => error,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it started"),
    }
}

/// Deploys an application with an option to set, and returns its model.
async fn deployed(client: &Client) -> ModelSelector {
    let add = ControllerCommand::add_model("m".parse().unwrap());
    let Answer::Model { uuid } = client.controller_command(add).await.unwrap() else { panic!("no model") };
    let charm = client.upload_charm(charm()).await.unwrap().digest;
    client.command(&uuid.into(), deploy(charm, 1)).await.unwrap();
    uuid.into()
}

async fn title(client: &Client, model: &ModelSelector) -> String {
    let shown = client.application(model, &application("tiny")).await.unwrap();
    match &shown.settings["title"].value {
        Some(periapt_host_api::settings::OptionValue::Text(title)) => title.clone(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_controller_does_not_start_on_a_database_that_is_damaged() {
    let directory = TempDir::new().unwrap();
    let (handle, client, running) = run(in_directory(directory.path())).await;
    deployed(&client).await;
    handle.shutdown();
    running.await.unwrap().unwrap();
    let store = directory.path().join("store");
    let current = fs::read(store.join("CURRENT")).unwrap();
    let damage: [&dyn Fn(); 2] = [&|| fs::write(store.join("CURRENT"), "MANIFEST-X").unwrap(), &|| {
        fs::remove_file(store.join("CURRENT")).unwrap()
    }];
    for act in damage {
        act();
        let error = refused(directory.path()).await;
        assert!(matches!(error, StoreError::Damaged(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(store.to_str().unwrap()) && !text.contains('\n'), "{text}");
    }
    fs::write(store.join("CURRENT"), current).unwrap();
    let (handle, client, running) = run(in_directory(directory.path())).await;
    assert_eq!(client.models().await.unwrap().len(), 1, "nothing was lost by trying");
    handle.shutdown();
    running.await.unwrap().unwrap();
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    with_file_system("bad_disks::a_directory_that_cannot_be_written_is_named", "ro", async |directory| {
        let Err(error) = periapt_controller::Options::in_directory(
            "home",
            directory,
            periapt_controller::Listen::InProcess("127.0.0.1:0".parse().unwrap()),
            "wasmtime 48",
            check_helper(),
        ) else {
            panic!("it was taken")
        };
        let text = error.to_string();
        assert!(text.contains(directory.to_str().unwrap()) && text.contains("Read-only"), "{text}");
        let error =
            periapt_store_rocksdb::RocksStore::open(directory, periapt_host_api::StoreId(uuid::Uuid::nil()))
                .await;
        let error = error.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains(directory.to_str().unwrap()) && text.contains("Read-only"), "{text}");
    });
}

/// Fills the file system with a file.
fn fill(directory: &Path) -> std::path::PathBuf {
    let ballast = directory.join("ballast");
    let mut file = fs::File::options().create(true).append(true).open(&ballast).unwrap();
    for piece in [1 << 16, 1 << 10, 1] {
        loop {
            match file.write_all(&vec![b'x'; piece]) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::StorageFull => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    ballast
}

#[test]
fn a_full_disk_is_told_loses_nothing_and_is_recovered_from() {
    let name = "bad_disks::a_full_disk_is_told_loses_nothing_and_is_recovered_from";
    with_file_system(name, "size=64m", async |directory| {
        let (handle, client, running) = run(in_directory(directory)).await;
        let model = deployed(&client).await;
        let mut status = client.watch_status(&model).await.unwrap();
        fill(directory);

        // The log has some reserved room.
        let (mut acknowledged, mut number) = ("mine".to_owned(), 0);
        let refusal = loop {
            number += 1;
            let text = format!("{number}-{}", "x".repeat(60_000));
            match client.commands(&model, vec![set_title(text.clone())]).await.unwrap().results.remove(0) {
                CommandResult::Ok(_) => acknowledged = text,
                CommandResult::Error(refusal) => break refusal,
            }
        };
        // Fills the room that the store freed when it was closed.
        let ballast = fill(directory);
        assert_eq!(refusal.code, ErrorCode::OutcomeUnknown);
        assert!(refusal.message.contains("No space left on device"), "{refusal:?}");
        let told = next_where(&mut status, |status| !status.controller.problems.is_empty()).await;
        assert!(told.controller.problems[0].contains("No space left on device"), "{told:?}");
        assert!(title(&client, &model).await == acknowledged, "reading goes on from what was acknowledged");

        let uploaded: Result<_, ClientError> = client.upload_charm(crate::fixture::larger_charm()).await;
        assert_eq!(code_of(uploaded), ErrorCode::StorageUnavailable);
        assert_eq!(files(&directory.join("blobs")), 1, "nothing half-written is left");

        fs::remove_file(ballast).unwrap();
        next_where(&mut status, |status| status.controller.problems.is_empty()).await;
        // The write in doubt may have been stored, but only as a whole.
        let found = title(&client, &model).await;
        assert!(found == acknowledged || found.starts_with(&format!("{number}-")), "{}", &found[..9]);
        client.command(&model, set_title("after")).await.unwrap();
        client.upload_charm(crate::fixture::larger_charm()).await.unwrap();

        drop(status);
        handle.shutdown();
        running.await.unwrap().unwrap();
        let ballast = fill(directory);
        let error = refused(directory).await;
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("No space left on device") && !text.contains('\n'), "{text}");
        fs::remove_file(ballast).unwrap();
        let (handle, client, running) = run(in_directory(directory)).await;
        assert_eq!(title(&client, &model).await, "after");
        handle.shutdown();
        running.await.unwrap().unwrap();
    });
}

/// Returns the number of files below a directory.
fn files(directory: &Path) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.map(|path| if path.is_dir() { files(&path) } else { 1 }).sum()
}
