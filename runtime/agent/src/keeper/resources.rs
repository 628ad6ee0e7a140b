//! The resources of one model on this host: fetched at a hook's request, and kept while an application here has them.
//!
//! A model's runner gets only resources that the controller gave this agent for the same model: each model has its own
//! directory. It gets a descriptor, so a deletion never affects a hook.
//!
//! A former image stays until the next one of its application is here, which takes the layers from it that both have.

mod layers;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, File, Permissions},
    io,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::{Mutex, MutexGuard};
use periapt_client::PartialFile;
use periapt_host_api::{
    ApplicationName, Digest, ModelUuid, UnitName,
    resource::{ContentLayers, MAX_RESOURCE_BYTES, ResourceKey, check_layers},
    view::{FrameLine, ViewEntity, ViewKey},
};
use tokio::task::spawn_blocking;

use super::{
    controller::{Controller, ControllerError},
    directories::Directories,
    downloads::DownloadKey,
    temporary,
};

/// The most former contents of an application that are remembered. After more, its next image is fetched whole.
const MAX_FORMER: usize = 64;

/// The resources of one model.
pub(crate) struct Resources<C> {
    controller: C,
    model: ModelUuid,
    directories: Arc<Directories>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// The resources of each application here, from the frames.
    shown: BTreeMap<ApplicationName, BTreeSet<Digest>>,
    /// The contents that an application has lost since an image of its present ones was fetched.
    former: BTreeMap<ApplicationName, BTreeSet<Digest>>,
    /// True if an application has lost a resource since the last clean-up, or a full view has begun. Any line of a
    /// frame may remove resources, and files may be deleted only after the last line.
    unsettled: bool,
    /// The contents that are being fetched. Other callers wait for the lock.
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
        let lost = before.map(|before| &before - &digests).unwrap_or_default();
        self.unsettled |= !lost.is_empty();
        if digests.is_empty() {
            self.former.remove(application);
        } else if !lost.is_empty() {
            // The last one may never have been fetched, so earlier ones count as well.
            let former = self.former.entry(application.clone()).or_default();
            former.extend(lost);
            if former.len() > MAX_FORMER {
                former.clear();
            }
        }
    }

    /// Returns the contents whose files stay.
    fn kept(&self) -> KeptContents {
        let shown = self.shown.values().flatten().copied().collect();
        KeptContents { shown, former: self.former.values().flatten().copied().collect() }
    }
}

/// The contents whose files stay.
#[derive(Debug)]
struct KeptContents {
    /// The contents that applications have.
    shown: BTreeSet<Digest>,
    /// The contents that applications had before: their images stay.
    former: BTreeSet<Digest>,
}

impl<C: Controller> Resources<C> {
    /// Creates the resources of one model.
    pub(crate) fn new(controller: C, model: ModelUuid, directories: Arc<Directories>) -> Self {
        Self { controller, model, directories, state: Arc::default() }
    }

    /// Opens a resource for reading. If it is missing, the controller checks the unit's permission and sends it.
    pub(crate) async fn obtain(&self, unit: &UnitName, key: &ResourceKey) -> Result<File, ControllerError> {
        let path = self.path(&key.digest);
        if let Some(file) = opened(path.clone()).await? {
            self.let_former_of_image_go(key.digest).await?;
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
        // One reference is this one and one is in the map, so no other caller waits.
        if Arc::strong_count(&turn) <= 2 {
            state.fetching.remove(&key.digest);
        }
        drop(state);
        fetched
    }

    async fn fetch(&self, unit: &UnitName, key: &ResourceKey) -> Result<File, ControllerError> {
        tracing::info!(model = %self.model, resource = %key.name, digest = %key.digest.short(), "fetching a resource");
        let found = self.layers_in(unit, key).await?;
        let wanted = DownloadKey::Resource(self.model, key.digest);
        let mut download = self.directories.downloads().begin(wanted).await?;
        if !self.put_together(unit, key, &found, download.content()).await? {
            self.controller.resource(self.model, unit, key, download.content()).await?;
        }
        let incoming = download.end().await?;
        // A hook with an older view may read a resource that its application has lost. That file is deleted with its
        // last handle.
        let kept = self.state().is_shown(&key.digest).then(|| self.path(&key.digest));
        let (digest, is_image) = (key.digest, !found.layers.is_empty());
        let file = blocking(move || {
            fs::set_permissions(incoming.path(), Permissions::from_mode(0o400))?;
            let file = File::open(incoming.path())?;
            if let Some(path) = kept {
                if let Some(directory) = path.parent() {
                    super::directories::private_directory(directory)?;
                    if is_image {
                        layers::write_list(directory, &digest, &found.layers)?;
                    }
                }
                fs::rename(incoming.path(), path)?;
            }
            Ok(file)
        })
        .await?;
        if is_image {
            self.let_former_go(&digest);
        }
        Ok(file)
    }

    /// Returns the layers in a content; none of one that is no image.
    async fn layers_in(&self, unit: &UnitName, key: &ResourceKey) -> Result<ContentLayers, ControllerError> {
        match self.controller.resource_layers(self.model, unit, key).await {
            Ok(found)
                if found.size <= MAX_RESOURCE_BYTES && check_layers(&found.layers, found.size).is_ok() =>
            {
                Ok(found)
            }
            // An earlier controller does not know the question, and any other refusal comes with the content again.
            Ok(_) | Err(ControllerError::Refused(_)) => Ok(ContentLayers::default()),
            Err(error) => Err(error),
        }
    }

    /// Writes an image's archive from layers that other archives here have, and fetches the rest. Returns false if there are
    /// none, or one is damaged.
    async fn put_together(
        &self,
        unit: &UnitName,
        key: &ResourceKey,
        found: &ContentLayers,
        file: &mut PartialFile,
    ) -> Result<bool, ControllerError> {
        let (directory, wanted) = (self.directories.resources(&self.model), found.layers.clone());
        let known = match wanted.is_empty() {
            true => Vec::new(),
            false => blocking(move || layers::known(&directory, &wanted)).await?,
        };
        if known.is_empty() {
            return Ok(false);
        }
        tracing::info!(layers = known.len(), of = found.layers.len(), "layers of the image are here");
        let is_whole =
            self.controller.resource_beside(self.model, unit, key, (found.size, known), file).await?;
        if !is_whole {
            tracing::warn!(digest = %key.digest.short(), "a layer of an image here is damaged: all of the image is fetched");
        }
        Ok(is_whole)
    }

    /// Deletes the former images of applications whose new one was here already.
    async fn let_former_of_image_go(&self, digest: Digest) -> Result<(), ControllerError> {
        if self.state().former.is_empty() {
            return Ok(());
        }
        let directory = self.directories.resources(&self.model);
        if blocking(move || Ok(layers::is_listed(&directory, &digest))).await? {
            self.let_former_go(&digest);
        }
        Ok(())
    }

    /// Deletes the former images of applications whose new one is here.
    fn let_former_go(&self, digest: &Digest) {
        let mut state = self.state();
        let State { shown, former, .. } = &mut *state;
        let before = former.len();
        former
            .retain(|application, _| !shown.get(application).is_some_and(|digests| digests.contains(digest)));
        if former.len() < before {
            let kept = state.kept();
            drop(state);
            self.keep_only(kept);
        }
    }

    /// Deletes all files but those of some contents, and unfinished downloads of contents that no application has.
    fn keep_only(&self, kept: KeptContents) {
        let (directories, model) = (Arc::clone(&self.directories), self.model);
        let state = Arc::clone(&self.state);
        spawn_blocking(move || {
            // An application may have got a content since, which may be here.
            let is_shown = |digest: &Digest| kept.shown.contains(digest) || state.lock().is_shown(digest);
            directories.downloads().retain(|key| match key {
                DownloadKey::Resource(of, digest) => *of != model || is_shown(digest),
                DownloadKey::Charm(_) => true,
            });
            let directory = directories.resources(&model);
            if let Err(error) = keep_only(&directory, &kept.former, is_shown) {
                tracing::warn!(%error, "unused resources could not be deleted");
            }
        });
    }

    /// Records a frame line's changes of applications, and deletes resources that none has any more.
    pub(crate) fn observe(&self, line: &FrameLine) {
        let kept = {
            let mut state = self.state();
            // A new runner starts with a full view. After the view's last line, files of earlier agents go, too.
            if line.from.is_none() && line.is_first() {
                state.shown.clear();
                state.former.clear();
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
            // Half a view must not delete anything.
            if !line.is_last() || !std::mem::take(&mut state.unsettled) {
                return;
            }
            state.kept()
        };
        self.keep_only(kept);
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directories.resources(&self.model).join(digest.to_string())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is consistent after each change, even after a panic.
        self.state.lock()
    }
}

/// Deletes all files but those of contents that are shown, and of former ones that are images.
fn keep_only(
    directory: &Path,
    former: &BTreeSet<Digest>,
    is_shown: impl Fn(&Digest) -> bool,
) -> io::Result<()> {
    let stays = |content: Digest| {
        is_shown(&content) || former.contains(&content) && layers::is_listed(directory, &content)
    };
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if !entry.file_name().to_str().and_then(layers::content_of).is_some_and(stays) {
            // Another clean-up may be faster.
            temporary::remove(&entry.path())?;
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
