//! Backups that are made while commands run.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_client::Client;
use periapt_controller::{BackupChain, BackupKeys, RestoredKeys, RestoredLog, restore};
use periapt_host_api::{
    Digest, Revision,
    api::ModelSelector,
    backup::BackupRequest,
    command::{Answer, Command, CommandResult, CommandResults, ControllerCommand},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{
    fixture::{application, charm, deploy, in_directory, run},
    listeners::authority_in,
};

/// The clients that send commands meanwhile.
const WRITERS: usize = 4;

/// The backups that are made one after the other.
const BACKUPS: usize = 3;

/// The units of a model after each of its commands, of which none may be half done: its addition, a deployment of three
/// units, and the addition of two more.
const UNITS: [usize; 3] = [0, 3, 5];

/// An acknowledged command: its model, the units that the model has from then on, and the revision of the answer.
#[derive(Debug, Clone)]
struct Step {
    model: String,
    units: usize,
    revision: Revision,
}

/// Returns the revision of the answer to one command.
fn revision_of(results: &CommandResults<Answer>) -> Revision {
    assert!(matches!(results.results.as_slice(), [CommandResult::Ok(_)]), "{results:?}");
    results.revision
}

/// Adds models one after the other, each with its units, until it is told to stop.
async fn write(
    client: Client,
    writer: usize,
    charm: Digest,
    acknowledged: Arc<Mutex<Vec<Step>>>,
    stop: CancellationToken,
) {
    for number in 0.. {
        let model = format!("w{writer}-{number}");
        let selector: ModelSelector = model.parse().unwrap();
        for units in UNITS {
            if stop.is_cancelled() {
                return;
            }
            let results = match units {
                0 => {
                    client
                        .controller_commands(vec![ControllerCommand::add_model(model.parse().unwrap())])
                        .await
                }
                3 => client.commands(&selector, vec![deploy(charm, 3)]).await,
                _ => {
                    let add = Command::AddUnits {
                        application: application("tiny"),
                        count: 2,
                        placement: Vec::new(),
                        attach_storage: Vec::new(),
                    };
                    client.commands(&selector, vec![add]).await
                }
            };
            let step = Step { model: model.clone(), units, revision: revision_of(&results.unwrap()) };
            acknowledged.lock().push(step);
        }
    }
}

/// Runs the controller of a restored directory, and returns the number of units of each of its models.
async fn units_in(directory: &Path) -> BTreeMap<String, usize> {
    let (handle, client, running) = run(in_directory(directory)).await;
    let mut units = BTreeMap::new();
    for model in client.models().await.unwrap() {
        let name = model.name.to_string();
        let status = client.status(&name.parse().unwrap()).await.unwrap();
        units.insert(name, status.applications.get("tiny").map_or(0, |application| application.units.len()));
    }
    handle.shutdown();
    running.await.unwrap().unwrap();
    units
}

/// Checks that a restored state has what each writer did up to some command, and nothing of a later one.
fn is_a_prefix(restored: &BTreeMap<String, usize>) {
    for writer in 0..WRITERS {
        let of_writer = format!("w{writer}-");
        let count = restored.keys().filter(|model| model.starts_with(&of_writer)).count();
        for number in 0..count {
            let units = restored.get(&format!("{of_writer}{number}"));
            let is_last = number + 1 == count;
            let is_possible = units.is_some_and(|units| match is_last {
                true => UNITS.contains(units),
                false => *units == 5,
            });
            assert!(is_possible, "model {number} of {count} of writer {writer} has units: {units:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_is_made_while_commands_run_has_all_that_were_acknowledged_before_and_none_half() {
    let place = TempDir::new().unwrap();
    let directory = place.path().join("controller");
    let (handle, client, running) = run(in_directory(&directory)).await;
    authority_in(&directory);
    let keys = RestoredKeys::Given(BackupKeys::in_directory(&directory).unwrap());
    let digest = client.upload_charm(charm()).await.unwrap().digest;
    let (acknowledged, stop) = (Arc::<Mutex<Vec<Step>>>::default(), CancellationToken::new());
    let writer =
        |number| tokio::spawn(write(client.clone(), number, digest, Arc::clone(&acknowledged), stop.clone()));
    let writers: Vec<_> = (0..WRITERS).map(writer).collect();

    let mut backups = Vec::new();
    for number in 0..BACKUPS {
        let so_far = acknowledged.lock().len();
        while acknowledged.lock().len() < so_far + 4 * WRITERS {
            assert!(writers.iter().all(|writer| !writer.is_finished()), "a writer failed");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let before = acknowledged.lock().clone();
        let file = place.path().join(format!("{number}.tar"));
        let mut written = tokio::fs::File::create(&file).await.unwrap();
        client.back_up(&BackupRequest::default(), &mut written, |_| {}).await.unwrap();
        backups.push((file, before));
    }
    stop.cancel();
    for writer in writers {
        writer.await.unwrap();
    }
    handle.shutdown();
    running.await.unwrap().unwrap();

    let all = acknowledged.lock().clone();
    for (number, (file, before)) in backups.into_iter().enumerate() {
        let backup = BackupChain::at(&file, &[]).unwrap();
        let revision = backup.manifest().revision;
        let into = place.path().join(format!("restored-{number}"));
        restore(backup, &into, &keys, None, RestoredLog::None).await.unwrap();
        let restored = units_in(&into).await;
        is_a_prefix(&restored);
        let has = |step: &Step| restored.get(&step.model).is_some_and(|units| *units >= step.units);
        for step in &before {
            assert!(step.revision <= revision && has(step), "{step:?}, acknowledged before {revision}");
        }
        for step in all.iter().filter(|step| step.revision <= revision) {
            assert!(has(step), "{step:?} is no later than {revision}");
        }
    }
}
