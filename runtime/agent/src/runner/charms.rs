//! The charms whose components are ready to run.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::{Mutex, MutexGuard};
use periapt_host_api::{Digest, Refusal};
use periapt_sandbox::{ArtifactError, PrepareError, Prepared, Sandbox};
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{Instant, sleep},
};

use super::link::Link;
use crate::protocol::{Call, CallOutcome, ReadyCharm, ToKeeper};
use periapt_client::Backoff;

/// The time for which an idle charm stays ready: longer than a 10 s interval of update-status. A ready interpreter
/// holds an image of 25 MB, and as much again in the slot of its last hook.
const IDLE_AFTER: Duration = Duration::from_secs(15);

/// The interval between checks for idle charms.
const LOOK: Duration = Duration::from_secs(5);

/// The most compiled parts to keep ready: each takes 50 KB, a descriptor, and three of the process's 65,530 mappings.
const MAX_CACHED_PARTS: usize = 256;

/// The longest wait before another request for a missing charm. Until its own next attempt, the keeper answers from
/// memory.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

/// Returns the waits between requests for a charm.
pub(crate) fn asking() -> Backoff {
    Backoff::new(Duration::from_millis(100), ASKED_AGAIN)
}

/// An error of preparing a charm.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// The charm is invalid.
    Unusable(Unusable),
    /// The keeper does not have the charm yet, and retries.
    Away(String),
}

/// The reason why a charm cannot be used, for its unit's status.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The keeper refused the charm, and does not retry.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The charm's component cannot be mapped and linked.
    #[error("charm {} cannot be used: {error}", .charm.short())]
    Component {
        /// The charm.
        charm: Digest,
        /// The cause.
        error: ComponentError,
    },
}

/// The reason why a component cannot be mapped and linked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ComponentError {
    /// The component's descriptor is missing.
    #[error("its compiled component was not received")]
    NoComponent,
    /// A module's descriptor is missing.
    #[error("a module of its component was not received")]
    NoModule,
    /// The compiled artifact cannot be read.
    #[error(transparent)]
    Load(#[from] ArtifactError),
    /// The component does not fit the sandbox.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The mapping thread panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// A charm with a mapped and linked component.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// The component's digest.
    pub(crate) component: Digest,
    /// The prepared component, with the charm's own files.
    pub(crate) prepared: Prepared,
    /// A reference that all copies share. If it is the only one, no hook uses the charm.
    users: Arc<()>,
}

/// The ready charms, by their digests.
#[derive(Debug)]
pub(crate) struct PreparedCharms {
    sandbox: Sandbox,
    link: Link,
    cached: Mutex<BTreeMap<Digest, CachedCharm>>,
}

/// A ready charm.
#[derive(Debug)]
struct CachedCharm {
    loaded: Loaded,
    /// The number of its compiled parts.
    parts: usize,
    asked_at: Instant,
}

impl CachedCharm {
    /// Returns true if no hook has requested the charm for [`IDLE_AFTER`]. While hooks use it, the time does not run.
    fn is_idle(&mut self, now: Instant) -> bool {
        if Arc::strong_count(&self.loaded.users) > 1 {
            self.asked_at = now;
        }
        now.duration_since(self.asked_at) >= IDLE_AFTER
    }
}

impl PreparedCharms {
    /// Creates an empty set.
    pub(crate) fn new(sandbox: Sandbox, link: Link) -> Self {
        Self { sandbox, link, cached: Mutex::default() }
    }

    /// Returns a ready charm, however long its preparation takes. The error is for an invalid charm.
    pub(crate) async fn get(&self, digest: Digest) -> Result<Loaded, Unusable> {
        let mut backoff = asking();
        loop {
            match self.ask(digest).await {
                Ok(loaded) => return Ok(loaded),
                Err(NotReady::Unusable(error)) => return Err(error),
                Err(NotReady::Away(_)) => sleep(backoff.failed()).await,
            }
        }
    }

    /// Requests a charm once. The keeper answers when it is fetched and compiled.
    pub(crate) async fn ask(&self, digest: Digest) -> Result<Loaded, NotReady> {
        if let Some(cached) = self.cached().get_mut(&digest) {
            cached.asked_at = Instant::now();
            return Ok(cached.loaded.clone());
        }
        match self.link.call(Call::Charm(digest)).await {
            CallOutcome::Charm(ready) => self.load(ready).await.map_err(NotReady::Unusable),
            CallOutcome::Refused(refusal) => Err(NotReady::Unusable(Unusable::Refused(refusal))),
            CallOutcome::Away { message } => Err(NotReady::Away(message)),
            CallOutcome::Answered { .. }
            | CallOutcome::Secret(_)
            | CallOutcome::Resource(_)
            | CallOutcome::Stream(_) => Err(NotReady::Away("the keeper answered something else".to_owned())),
        }
    }

    async fn load(&self, ready: ReadyCharm) -> Result<Loaded, Unusable> {
        let (digest, component, parts) = (ready.digest, ready.component, 1 + ready.modules.len());
        let unusable = |error| Unusable::Component { charm: digest, error };
        let sandbox = self.sandbox.clone();
        // Mapping the code and listing the charm's files take long, and this thread also runs hooks.
        let prepared = spawn_blocking(move || prepare(&sandbox, &ready)).await;
        let prepared = prepared.map_err(|error| unusable(error.into()))?.map_err(unusable)?;
        let loaded = Loaded { component, prepared, users: Arc::default() };
        let too_many = {
            let mut cached = self.cached();
            let held: usize = cached.values().map(|cached| cached.parts).sum();
            // Hooks that need one of these load it again.
            let too_many =
                if held + parts > MAX_CACHED_PARTS { std::mem::take(&mut *cached) } else { BTreeMap::new() };
            let asked_at = Instant::now();
            cached.insert(digest, CachedCharm { loaded: loaded.clone(), parts, asked_at });
            too_many
        };
        self.release(too_many).await;
        Ok(loaded)
    }

    /// Releases idle charms until the runner ends.
    pub(crate) async fn release_idle(&self) {
        loop {
            sleep(LOOK).await;
            let now = Instant::now();
            let idle = self.cached().extract_if(.., |_, cached| cached.is_idle(now)).collect();
            self.release(idle).await;
        }
    }

    /// Unmaps charms, and tells the keeper to release their code, too.
    async fn release(&self, charms: BTreeMap<Digest, CachedCharm>) {
        let digests: Vec<_> = charms.keys().copied().collect();
        if digests.is_empty() {
            return;
        }
        // This also frees the memory slots of the component's last hooks. A panic could only come from a destructor.
        let _ = spawn_blocking(move || drop(charms)).await;
        for digest in digests {
            self.link.send(ToKeeper::Released(digest)).await;
        }
    }

    fn cached(&self) -> MutexGuard<'_, BTreeMap<Digest, CachedCharm>> {
        self.cached.lock()
    }
}

fn prepare(sandbox: &Sandbox, ready: &ReadyCharm) -> Result<Prepared, ComponentError> {
    let Some(artefact) = &ready.artefact else {
        return Err(ComponentError::NoComponent);
    };
    let mut modules = Vec::new();
    for module in &ready.modules {
        let Some(artefact) = &module.artefact else {
            return Err(ComponentError::NoModule);
        };
        modules.push((module.digest, artefact.clone()));
    }
    let native = sandbox.load(artefact, &modules)?;
    Ok(sandbox.prepare(&native, Some(&ready.directory))?)
}
