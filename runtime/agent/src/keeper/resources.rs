//! Resources of one model on this host: fetched when a hook asks for one, kept while an application here has it.
//!
//! A model's runner is given what the controller let this agent have for that model, and nothing that came for another:
//! each model has a directory of its own. What is given is a descriptor, so that nothing a hook reads goes away under it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use periapt_host_api::{
    ApplicationName, Digest, ModelUuid, UnitName,
    resource::ResourceKey,
    view::{FrameLine, ViewEntity, ViewKey},
};
use tokio::task::spawn_blocking;

use super::{
    controller::{Controller, ControllerError},
    directories::Directories,
    temporary::Temporary,
};

/// Numbers what is on its way, over all models: they share the directory of unfinished work.
static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// The resources of one model.
pub(crate) struct Resources<C> {
    controller: C,
    model: ModelUuid,
    directories: Arc<Directories>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// What each application here has, as frames tell.
    shown: BTreeMap<ApplicationName, BTreeSet<Digest>>,
    /// Something was taken from an application since files were looked through last, or a full view has begun. What a
    /// frame takes may be on any of its lines, and it is only after the last that files may go.
    unsettled: bool,
    /// Content that somebody fetches: whoever else wants it waits.
    fetching: BTreeMap<Digest, Arc<tokio::sync::Mutex<()>>>,
}

impl State {
    fn is_shown(&self, digest: &Digest) -> bool {
        self.shown.values().any(|digests| digests.contains(digest))
    }

    fn show(&mut self, application: &ApplicationName, digests: BTreeSet<Digest>) {
        let before = match digests.is_empty() {
            true => self.shown.remove(application),
            false => self.shown.insert(application.clone(), digests.clone()),
        };
        self.unsettled |= before.is_some_and(|before| !before.is_subset(&digests));
    }
}

impl<C: Controller> Resources<C> {
    /// Of one model.
    pub(crate) fn new(controller: C, model: ModelUuid, directories: Arc<Directories>) -> Self {
        Self { controller, model, directories, state: Mutex::default() }
    }

    /// The content of a resource, open to be read. What is not at hand, the controller decides on and gives.
    pub(crate) async fn obtain(&self, unit: &UnitName, key: &ResourceKey) -> Result<File, ControllerError> {
        let path = self.path(&key.digest);
        if let Some(file) = opened(path.clone()).await? {
            return Ok(file);
        }
        let turn = Arc::clone(self.state().fetching.entry(key.digest).or_default());
        let fetched = {
            let _turn = turn.lock().await;
            match opened(path).await? {
                Some(file) => Ok(file),
                None => self.fetch(unit, key).await,
            }
        };
        let mut state = self.state();
        // This one and that of the map: nobody else waits.
        if Arc::strong_count(&turn) <= 2 {
            state.fetching.remove(&key.digest);
        }
        drop(state);
        fetched
    }

    async fn fetch(&self, unit: &UnitName, key: &ResourceKey) -> Result<File, ControllerError> {
        tracing::info!(model = %self.model, resource = %key.name, digest = %key.digest.short(), "fetching a resource");
        let number = SEQUENCE.fetch_add(1, Ordering::Relaxed);
        let incoming = Temporary::new(self.directories.incoming().join(format!("{number}.resource")));
        self.controller.resource(self.model, unit, key, incoming.path()).await?;
        // What is shown no more is read by hooks that began before: it goes with the last of them.
        let kept = self.state().is_shown(&key.digest).then(|| self.path(&key.digest));
        blocking(move || {
            fs::set_permissions(incoming.path(), Permissions::from_mode(0o400))?;
            let file = File::open(incoming.path())?;
            if let Some(path) = kept {
                if let Some(directory) = path.parent() {
                    super::directories::private_directory(directory)?;
                }
                fs::rename(incoming.path(), path)?;
            }
            Ok(file)
        })
        .await
    }

    /// Takes note of what a line of a frame tells of applications, and deletes what none of them has any more.
    pub(crate) fn observe(&self, line: &FrameLine) {
        let kept = {
            let mut state = self.state();
            // A full view is the first of a new runner: what an earlier agent left is looked through then.
            if line.from.is_none() && line.is_first() {
                state.shown.clear();
                state.unsettled = true;
            }
            for key in &line.deletes {
                if let ViewKey::Application(name) = key {
                    state.show(name, BTreeSet::new());
                }
            }
            for entity in &line.puts {
                if let ViewEntity::Application(application) = entity {
                    let digests = application.resources.values().map(|content| content.digest);
                    state.show(&application.name, digests.collect());
                }
            }
            // Half a view is no reason to delete anything.
            if !line.is_last() || !std::mem::take(&mut state.unsettled) {
                return;
            }
            state.shown.values().flatten().copied().collect::<BTreeSet<_>>()
        };
        let directory = self.directories.resources(&self.model);
        spawn_blocking(move || {
            if let Err(error) = keep_only(directory, &kept) {
                tracing::warn!(%error, "unused resources could not be deleted");
            }
        });
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directories.resources(&self.model).join(digest.to_string())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep_only(directory: PathBuf, kept: &BTreeSet<Digest>) -> io::Result<()> {
    let kept: BTreeSet<String> = kept.iter().map(Digest::to_string).collect();
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().is_none_or(|name| !kept.contains(name)) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

async fn opened(path: PathBuf) -> Result<Option<File>, ControllerError> {
    blocking(move || match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    })
    .await
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, ControllerError> {
    match spawn_blocking(work).await {
        Ok(result) => result.map_err(|error| ControllerError::Away(error.to_string())),
        Err(error) => Err(ControllerError::Away(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
