//! The world outside of a hook in a trial.

use std::{collections::BTreeMap, fs::File, path::PathBuf, time::Duration};

use parking_lot::Mutex;
use periapt_hook::{CallError, CallTime, HeldLease, LeaseState};
use periapt_host_api::{
    Digest, Timestamp,
    commit::EarlyEffect,
    resource::ResourceKey,
    secret::{SecretData, SecretKey, SecretRevision},
    timing::LEADERSHIP_GUARANTEE_MS,
};
use periapt_sandbox::{BoxFuture, HookServices};

use crate::{Scene, SceneError, scene::view::TERM};

/// The paths of resources' contents.
pub(crate) type Contents = BTreeMap<Digest, PathBuf>;

/// The world outside of a hook in a trial.
pub(crate) struct Stage {
    now: CallTime,
    lease: LeaseState,
    secrets: BTreeMap<SecretKey, SecretData>,
    resources: Contents,
    early: Mutex<Vec<EarlyEffect>>,
}

impl Stage {
    pub(crate) fn new(scene: &Scene, at: Timestamp, resources: Contents) -> Result<Self, SceneError> {
        Ok(Self {
            now: CallTime { at, boot_ms: 0 },
            lease: lease(scene),
            secrets: contents_of_secrets(scene)?,
            resources,
            early: Mutex::default(),
        })
    }

    pub(crate) fn lease(&self) -> LeaseState {
        self.lease
    }

    pub(crate) fn take_early(&self) -> Vec<EarlyEffect> {
        std::mem::take(&mut self.early.lock())
    }

    pub(crate) fn secret(&self, key: SecretKey) -> Result<SecretData, CallError> {
        let id = key.id.to_string();
        let missing = || match key.revision {
            // The view has all secrets of the scene, so this one does not exist.
            SecretRevision::NONE => format!("secret {id:?} not found"),
            revision => format!("secret {id:?} revision {revision} not found"),
        };
        self.secrets.get(&key).cloned().ok_or_else(|| CallError::NotFound(missing()))
    }

    pub(crate) fn resource(&self, key: &ResourceKey) -> Result<File, CallError> {
        let missing = || CallError::NotFound(format!("resource {:?} not found", key.name.as_str()));
        let path = self.resources.get(&key.digest).ok_or_else(missing)?;
        File::open(path).map_err(|error| CallError::Failed(format!("{}: {error}", path.display())))
    }
}

fn ready<T: Send + 'static>(value: T) -> BoxFuture<'static, T> {
    Box::pin(std::future::ready(value))
}

impl HookServices for Stage {
    fn now(&self) -> CallTime {
        self.now
    }

    fn renew_lease(&self) -> BoxFuture<'_, LeaseState> {
        ready(self.lease)
    }

    fn fetch_secret(&self, key: SecretKey) -> BoxFuture<'_, Result<SecretData, CallError>> {
        ready(self.secret(key))
    }

    fn fetch_resource(&self, key: ResourceKey) -> BoxFuture<'_, Result<File, CallError>> {
        ready(self.resource(&key))
    }

    fn early(&self, items: Vec<(Timestamp, EarlyEffect)>) {
        let mut early = self.early.lock();
        early.extend(items.into_iter().map(|(_, effect)| effect));
    }

    /// Returns at once, because time stands still.
    fn sleep(&self, _duration: Duration) -> BoxFuture<'static, ()> {
        ready(())
    }
}

/// Returns the lease, which lasts to the hook's end, because time stands still in a trial.
fn lease(scene: &Scene) -> LeaseState {
    let held = HeldLease { term: TERM, valid_until_ms: 2 * LEADERSHIP_GUARANTEE_MS };
    LeaseState { held: scene.leader.then_some(held) }
}

fn contents_of_secrets(scene: &Scene) -> Result<BTreeMap<SecretKey, SecretData>, SceneError> {
    let mut contents = BTreeMap::new();
    for secret in &scene.secrets {
        for (revision, texts) in &secret.revisions {
            let data = SecretData::from_texts(texts.clone())
                .map_err(|reason| SceneError::Secret { id: secret.id, reason })?;
            contents.insert(SecretKey { id: secret.id, revision: *revision }, data);
        }
    }
    Ok(contents)
}
