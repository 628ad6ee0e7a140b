//! A charm opened for trials.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, Read as _},
    path::Path,
    sync::Arc,
};

use periapt_archive::{Archive, COMPONENT, InspectError, inspect};
use periapt_hook::{HookContext, HookInputs, HookLimits};
use periapt_host_api::{
    Digest, ResourceName, Timestamp,
    charm::CharmMeta,
    commit::{EarlyEffect, HookEffects},
    resource::MAX_RESOURCE_BYTES,
    view::ResourceView,
};
use periapt_sandbox::{
    Bounds, Budgets, Filesystem, HookReport, HookServices, Options, Prepared, RunInputs, Sandbox, Seed,
    StorageMount,
};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    CompiledCache, Scene, SceneError, StorageScene, TrialError, TrialOutcome, TrialResult,
    scene::{
        check, declared, event,
        view::{self, OfCharm, STORAGE_MIB},
    },
    stage::{Contents, Stage},
};

/// The most files of a storage.
const STORAGE_FILES: u64 = 100_000;

/// A charm, ready to run hooks.
pub struct Trial {
    pub(crate) sandbox: Sandbox,
    pub(crate) prepared: Prepared,
    meta: CharmMeta,
    digest: Digest,
    component: Digest,
    /// The files that hooks see at `/charm`. They are removed with the trial.
    _files: TempDir,
}

impl fmt::Debug for Trial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trial").field("charm", &self.meta.name).finish_non_exhaustive()
    }
}

impl Trial {
    /// Opens a packed charm. Its component is compiled in this process, unless the cache has it.
    ///
    /// # Errors
    /// [`TrialError`]
    pub fn open(archive: &[u8], cache: &CompiledCache) -> Result<Self, TrialError> {
        let inspected = inspect(archive)?;
        let unpacked = Archive::read(archive)?;
        let files = lay_out(&unpacked)?;
        let sandbox = Sandbox::new(Options { hooks_in_flight: 1, ..Options::default() })?;
        let component = unpacked.file(COMPONENT).ok_or(InspectError::NoComponent)?;
        let loaded = cache.load(&sandbox, component)?;
        Ok(Self {
            prepared: sandbox.prepare(&loaded, Some(files.path()))?,
            sandbox,
            meta: inspected.meta,
            digest: inspected.digest,
            component: inspected.component,
            _files: files,
        })
    }

    /// Returns the charm as views have it.
    pub(crate) fn charm(&self) -> OfCharm<'_> {
        OfCharm { digest: self.digest, meta: &self.meta }
    }

    /// Returns the digest of the charm's component.
    pub(crate) fn component(&self) -> Digest {
        self.component
    }

    /// Returns the charm's metadata.
    pub fn meta(&self) -> &CharmMeta {
        &self.meta
    }

    /// Runs one scene. It needs a runtime with time.
    ///
    /// # Errors
    /// [`TrialError::Scene`]: the scene is invalid. A hook that fails is no error but an outcome.
    pub async fn run(&self, scene: &Scene) -> Result<TrialResult, TrialError> {
        let PreparedScene { context, seed, budgets, stage } = self.play(scene)?;
        let services = Arc::clone(&stage) as Arc<dyn HookServices>;
        let inputs = RunInputs { context, seed, budgets, storage: self.mounts(scene)?, services };
        let report = self.sandbox.run_hook(&self.prepared, inputs).await?;
        Ok(tried(report, stage.take_early()))
    }

    /// Returns the hook context of a scene, to run the charm's code in another way.
    ///
    /// # Errors
    /// [`TrialError::Scene`]: the scene is invalid.
    pub fn context(&self, scene: &Scene) -> Result<HookContext, TrialError> {
        Ok(self.play(scene)?.context)
    }

    /// Sets a scene up.
    pub(crate) fn play(&self, scene: &Scene) -> Result<PreparedScene, TrialError> {
        PreparedScene::new(scene, &self.charm())
    }

    fn mounts(&self, scene: &Scene) -> Result<Vec<StorageMount>, SceneError> {
        let mount = |storage: &StorageScene| {
            let meta = declared(&self.meta, &storage.id)?;
            let bounds = Bounds { bytes: STORAGE_MIB << 20, files: STORAGE_FILES };
            let filesystem = Filesystem::open(&storage.directory, bounds)
                .map_err(|error| unusable(&storage.directory, &error))?;
            let location = meta.location_of(&storage.id);
            Ok(StorageMount { filesystem: Arc::new(filesystem), location, read_only: meta.read_only })
        };
        scene.storages.iter().map(mount).collect()
    }
}

/// A scene that is set up, without the code that handles the hook.
pub(crate) struct PreparedScene {
    pub(crate) context: HookContext,
    pub(crate) seed: Seed,
    pub(crate) budgets: Budgets,
    pub(crate) stage: Arc<Stage>,
}

impl PreparedScene {
    pub(crate) fn new(scene: &Scene, charm: &OfCharm<'_>) -> Result<Self, TrialError> {
        check::check(scene, charm.meta)?;
        let seed = seed(scene)?;
        let at = scene.now.unwrap_or_else(Timestamp::now);
        let (resources, contents) = resources(scene, charm.meta)?;
        let event = event::event(scene, charm.meta)?;
        let stage = Arc::new(Stage::new(scene, at, contents)?);
        let view = view::view(scene, &event, charm, &resources, at)?;
        let settings = view.budgets(scene.unit.application());
        let budgets = match event.task() {
            Some(_) => Budgets::of_action(&settings),
            None => Budgets::of_hook(&settings),
        };
        let inputs = HookInputs {
            limits: HookLimits::of_hook(&view, &scene.unit),
            view,
            unit: scene.unit.clone(),
            event,
            attempt: scene.attempt,
            lease: stage.lease(),
            context_id: "0".repeat(32),
            ids: seed.ids(),
            api_addresses: Vec::new(),
        };
        Ok(Self { context: HookContext::new(inputs)?, seed, budgets, stage })
    }
}

type Shown = BTreeMap<ResourceName, ResourceView>;

/// Returns the attached resources for the view, and the paths of their contents.
fn resources(scene: &Scene, meta: &CharmMeta) -> Result<(Shown, Contents), SceneError> {
    let (mut shown, mut contents) = (BTreeMap::new(), BTreeMap::new());
    for (name, path) in &scene.resources {
        if !meta.resources.contains_key(name) {
            return Err(SceneError::Undeclared { what: "resource", name: name.to_string() });
        }
        let (digest, size) = digest(path).map_err(|error| unusable(path, &error))?;
        shown.insert(name.clone(), ResourceView { revision: 1, digest, size });
        contents.insert(digest, path.clone());
    }
    Ok((shown, contents))
}

/// Returns a resource's digest and size. Refuses anything but a regular file within the bound of
/// resources.
fn digest(path: &Path) -> io::Result<(Digest, u64)> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut file = fs::File::open(path)?.take(MAX_RESOURCE_BYTES.saturating_add(1));
    let (mut hasher, mut size, mut piece) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = file.read(&mut piece)?;
        if read == 0 {
            break;
        }
        size += read as u64;
        hasher.update(piece.get(..read).unwrap_or_default());
    }
    match size > MAX_RESOURCE_BYTES {
        true => Err(io::Error::other(format!("a resource has at most {MAX_RESOURCE_BYTES} bytes"))),
        false => Ok((Digest::from_bytes(hasher.finalize().into()), size)),
    }
}

fn unusable(path: &Path, error: &dyn fmt::Display) -> SceneError {
    SceneError::File { path: path.display().to_string(), reason: error.to_string() }
}

/// Unpacks an archive to the directory that hooks see at `/charm`. The archive reader has checked its
/// paths.
fn lay_out(archive: &Archive) -> io::Result<TempDir> {
    let directory = TempDir::with_prefix("periapt-trial-")?;
    // The component is left out, as in an agent: it is none of the charm's files.
    for (path, content) in archive.files().filter(|(path, _)| *path != COMPONENT) {
        let place = directory.path().join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(place, content)?;
    }
    Ok(directory)
}

fn seed(scene: &Scene) -> Result<Seed, TrialError> {
    let mut seed = [0; 32];
    match &scene.seed {
        Some(text) => hex::decode_to_slice(text, &mut seed).map_err(|_| SceneError::Seed)?,
        None => getrandom::fill(&mut seed).map_err(io::Error::other)?,
    }
    Ok(Seed(seed))
}

pub(crate) fn tried(report: HookReport, mut early: Vec<EarlyEffect>) -> TrialResult {
    let HookReport { outcome, gathered, costs, .. } = report;
    let outcome = TrialOutcome::from(outcome);
    let effects = match outcome {
        TrialOutcome::Handled | TrialOutcome::Unhandled => gathered.effects,
        TrialOutcome::Failed { .. } => HookEffects::default(),
    };
    early.extend(gathered.early.into_iter().map(|(_, effect)| effect));
    TrialResult { outcome, effects, early, action: gathered.action.map(Into::into), costs }
}
