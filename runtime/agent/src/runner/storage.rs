//! The storage of the model's units on the agent's disk.
//!
//! Each instance is a directory `NAME-NUMBER` below the model's own. Directories that the controller does not know
//! stay: they are released storage, with an operator's files.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::DirBuilderExt as _,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_host_api::{
    StorageId, UnitName,
    agent::{RunnerCommand, StorageReport},
    status::Life,
    storage::{bytes_of, files_of},
    view::{StorageView, View},
};
use periapt_sandbox::{Bounds, Filesystem, FilesystemError, StorageMount};
use tokio::time::sleep;

use super::{RunnerContext, RunnerError};
use crate::protocol::{Call, CallOutcome};
use periapt_client::Backoff;

/// The longest wait before another attempt to create or delete storage.
const TRIED_AGAIN: Duration = Duration::from_secs(30);

/// The number and interval of checks by a hook, until the previous runner has released its storage.
const LOOKS: u32 = 100;
const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// The reason why a hook's storage cannot be mounted.
#[derive(Debug, thiserror::Error)]
#[error("storage {storage}: {error}")]
pub(crate) struct MountError {
    storage: StorageId,
    error: FilesystemError,
}

/// The reason why storage could not be made or deleted, as the runner reports it.
#[derive(Debug, thiserror::Error)]
enum StepError {
    #[error("cannot make its directory: {0}")]
    Make(io::Error),
    #[error("cannot delete its files: {0}")]
    Delete(FilesystemError),
}

/// The storage on this agent's disk.
#[derive(Debug)]
pub(crate) struct Storages {
    directory: PathBuf,
    /// The open filesystems, which count their content once and then keep the count.
    open: Mutex<BTreeMap<StorageId, Arc<Filesystem>>>,
    /// True while storage is due to be created or deleted.
    busy: AtomicBool,
}

impl Storages {
    /// Creates the manager for a directory, which is itself created on demand.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, open: Mutex::default(), busy: AtomicBool::new(false) }
    }

    /// Returns true if no storage is due to be created or deleted.
    pub(crate) fn at_rest(&self) -> bool {
        !self.busy.load(Ordering::Relaxed)
    }

    fn place(&self, id: &StorageId) -> PathBuf {
        self.directory.join(format!("{}-{}", id.name(), id.number()))
    }

    /// Returns the mounts for a unit's hook: all of its storage.
    pub(crate) async fn mounts(&self, view: &View, unit: &UnitName) -> Result<Vec<StorageMount>, MountError> {
        let mut mounts = Vec::new();
        for storage in view.storages.values().filter(|storage| storage.provisioned) {
            let Some(attachment) = storage.attachment.as_ref().filter(|it| it.unit == *unit) else {
                continue;
            };
            let filesystem = self.open(storage).await;
            mounts.push(StorageMount {
                filesystem: filesystem.map_err(|error| MountError { storage: storage.id.clone(), error })?,
                location: attachment.location.clone(),
                read_only: attachment.read_only,
            });
        }
        Ok(mounts)
    }

    async fn open(&self, storage: &StorageView) -> Result<Arc<Filesystem>, FilesystemError> {
        let known = self.known().get(&storage.id).cloned();
        if let Some(filesystem) = known {
            return Ok(filesystem);
        }
        let bounds = Bounds { bytes: bytes_of(storage.size), files: files_of(storage.size) };
        let mut looks = 0;
        let filesystem = loop {
            let place = self.place(&storage.id);
            match blocking(move || Filesystem::open(&place, bounds)).await {
                // The previous runner is about to end.
                Err(FilesystemError::InUse) if looks < LOOKS => looks += 1,
                opened => break Arc::new(opened?),
            }
            sleep(LOOK_AGAIN).await;
        };
        self.known().insert(storage.id.clone(), Arc::clone(&filesystem));
        Ok(filesystem)
    }

    fn known(&self) -> parking_lot::MutexGuard<'_, BTreeMap<StorageId, Arc<Filesystem>>> {
        self.open.lock()
    }

    /// Closes the filesystems that no unit has any more.
    fn let_go(&self, view: &View) {
        let held = |id: &StorageId| view.storages.get(id).is_some_and(|storage| storage.attachment.is_some());
        self.known().retain(|id, _| held(id));
    }
}

/// Creates and deletes storage as due, until the runner ends.
pub(crate) async fn run(runner: Arc<RunnerContext>) -> Result<(), RunnerError> {
    let mut changes = runner.mirror.changes();
    let mut backoff = Backoff::new(Duration::from_millis(200), TRIED_AGAIN);
    loop {
        let view = changes.view();
        runner.storages.let_go(&view);
        let due: Vec<Step> = view.storages.values().filter_map(Step::of).collect();
        runner.storages.busy.store(!due.is_empty(), Ordering::Relaxed);
        let mut failed = false;
        for step in &due {
            failed |= !step.done(&runner).await;
        }
        if failed {
            let wait = backoff.failed();
            tokio::select! {
                () = changes.next() => {}
                () = sleep(wait) => {}
            }
        } else {
            backoff.succeeded();
            changes.next().await;
        }
    }
}

/// One change on the disk.
enum Step {
    Make(StorageId),
    Delete(StorageId),
}

impl Step {
    fn of(storage: &StorageView) -> Option<Self> {
        match (storage.provisioned, &storage.attachment) {
            (false, Some(_)) => Some(Self::Make(storage.id.clone())),
            (true, None) if storage.life != Life::Alive => Some(Self::Delete(storage.id.clone())),
            _ => None,
        }
    }

    /// Makes the change and reports it. Returns false if it must be repeated.
    async fn done(&self, runner: &RunnerContext) -> bool {
        let (id, done) = match self {
            Self::Make(id) => (id, make(runner, id).await.map(|()| StorageReport::Provisioned)),
            Self::Delete(id) => (id, delete(runner, id).await.map(|()| StorageReport::Deleted)),
        };
        let worked = done.is_ok();
        let report = done.unwrap_or_else(|error| {
            tracing::warn!(storage = %id, %error, "storage could not be made or deleted");
            StorageReport::Failed { message: error.to_string() }
        });
        let (storage, incarnation) = (id.clone(), runner.incarnation);
        let command = RunnerCommand::Storage { storage, incarnation, report };
        match runner.link.call(Call::Command(Box::new(command))).await {
            CallOutcome::Answered { revision, .. } => {
                runner.mirror.wait_for(|view| view.revision >= revision).await;
                worked && self.is_had(runner).await
            }
            // The model has changed, and the next view will show how.
            CallOutcome::Refused(refusal) => {
                tracing::info!(storage = %id, %refusal, "the controller refused a report about storage");
                false
            }
            CallOutcome::Charm(_)
            | CallOutcome::Secret(_)
            | CallOutcome::Resource(_)
            | CallOutcome::Stream(_)
            | CallOutcome::Away { .. } => false,
        }
    }

    /// Returns true if the controller accepts the report. It rejects storage beyond the agent's limit. Such storage is
    /// deleted, and created again once there is room.
    async fn is_had(&self, runner: &RunnerContext) -> bool {
        let Self::Make(id) = self else { return true };
        if runner.mirror.view().storages.get(id).is_none_or(|storage| storage.provisioned) {
            return true;
        }
        if let Err(error) = delete(runner, id).await {
            tracing::warn!(storage = %id, %error, "storage without enough free space could not be deleted");
        }
        false
    }
}

async fn make(runner: &RunnerContext, id: &StorageId) -> Result<(), StepError> {
    let (parent, place) = (runner.storages.directory.clone(), runner.storages.place(id));
    let made = blocking(move || -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&parent)?;
        match fs::DirBuilder::new().mode(0o700).create(&place) {
            // An earlier attempt created the directory, and its report was lost.
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // Reported storage must survive a power cut.
        fs::File::open(&parent)?.sync_all()
    });
    made.await.map_err(StepError::Make)
}

async fn delete(runner: &RunnerContext, id: &StorageId) -> Result<(), StepError> {
    let place = runner.storages.place(id);
    let deleted = blocking(move || Filesystem::delete(&place));
    deleted.await.map_err(StepError::Delete)
}

/// Runs disk operations that may take long on another thread.
async fn blocking<T: Send + 'static, E: From<io::Error> + Send + 'static>(
    work: impl FnOnce() -> Result<T, E> + Send + 'static,
) -> Result<T, E> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(io::Error::other(error).into()),
    }
}
