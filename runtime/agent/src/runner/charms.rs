//! Components that are ready to be instantiated.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use periapt_host_api::{Digest, Refusal};
use periapt_sandbox::{ArtifactError, PrepareError, Prepared, Sandbox};
use tokio::{
    task::{JoinError, spawn_blocking},
    time::{Instant, sleep},
};

use super::link::Link;
use crate::protocol::{Call, CallOutcome, ReadyCharm, ToKeeper};
use periapt_client::Backoff;

/// How long a charm stays ready after its last hook: one more than an interval of 10 s between two runs of update-status. An
/// interpreter that is ready holds 25 MB of image, and as much again in the slot of its last hook.
const IDLE_AFTER: Duration = Duration::from_secs(15);

/// How often it is looked for charms that are idle.
const LOOK: Duration = Duration::from_secs(5);

/// The most compiled parts of components that are kept ready: one costs 50 KB, a descriptor, and three mappings of the
/// process' 65,530.
const KEPT: usize = 256;

/// The longest wait before a charm that is not in place is asked for again: the keeper answers from memory until it tries
/// again itself.
const ASKED_AGAIN: Duration = Duration::from_secs(2);

/// The waits between one question for a charm and the next.
pub(crate) fn asking() -> Backoff {
    Backoff::new(Duration::from_millis(100), ASKED_AGAIN)
}

/// Why a charm cannot run.
#[derive(Debug)]
pub(crate) enum NotReady {
    /// It is the charm's own fault.
    Unusable(Unusable),
    /// The keeper does not have it yet, and tries again.
    Away(String),
}

/// The reason why a charm cannot be used, as its unit's status gives it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unusable {
    /// The keeper could not fetch or compile it, and does not try again.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// Its component cannot be mapped and linked.
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
    /// The keeper gave no descriptor of the component.
    #[error("its compiled component did not come")]
    NoComponent,
    /// The keeper gave no descriptor of a module.
    #[error("a module of its component did not come")]
    NoModule,
    /// The compiled artifact cannot be read.
    #[error(transparent)]
    Load(#[from] ArtifactError),
    /// It does not fit the sandbox.
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    /// The thread that mapped it panicked.
    #[error(transparent)]
    Panicked(#[from] JoinError),
}

/// A charm whose component is mapped and linked.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// Its component.
    pub(crate) component: Digest,
    /// Ready to be instantiated, with the charm's own files.
    pub(crate) prepared: Prepared,
    /// Shared by all copies: one that nobody shares is in no hook's hands.
    users: Arc<()>,
}

/// Charms by their digests.
#[derive(Debug)]
pub(crate) struct PreparedCharms {
    sandbox: Sandbox,
    link: Link,
    kept: Mutex<BTreeMap<Digest, Kept>>,
}

/// A charm that is kept ready.
#[derive(Debug)]
struct Kept {
    loaded: Loaded,
    /// How many compiled parts it has.
    parts: usize,
    asked_at: Instant,
}

impl Kept {
    /// Whether nobody has asked for it for so long. It is not idle while a hook has it, nor at once after that.
    fn is_idle(&mut self, now: Instant) -> bool {
        if Arc::strong_count(&self.loaded.users) > 1 {
            self.asked_at = now;
        }
        now.duration_since(self.asked_at) >= IDLE_AFTER
    }
}

impl PreparedCharms {
    /// None yet.
    pub(crate) fn new(sandbox: Sandbox, link: Link) -> Self {
        Self { sandbox, link, kept: Mutex::default() }
    }

    /// A charm that can run, however long it takes to fetch and to compile; an error is the charm's own fault.
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

    /// The same, asked once; the keeper takes as long as it takes to fetch and to compile it.
    pub(crate) async fn ask(&self, digest: Digest) -> Result<Loaded, NotReady> {
        if let Some(kept) = self.kept().get_mut(&digest) {
            kept.asked_at = Instant::now();
            return Ok(kept.loaded.clone());
        }
        match self.link.call(Call::Charm(digest)).await {
            CallOutcome::Charm(ready) => self.load(ready).await.map_err(NotReady::Unusable),
            CallOutcome::Refused(refusal) => Err(NotReady::Unusable(Unusable::Refused(refusal))),
            CallOutcome::Away { message } => Err(NotReady::Away(message)),
            CallOutcome::Answered { .. } | CallOutcome::Secret(_) | CallOutcome::Resource(_) => {
                Err(NotReady::Away("the keeper answered something else".to_owned()))
            }
        }
    }

    async fn load(&self, ready: ReadyCharm) -> Result<Loaded, Unusable> {
        let (digest, component, parts) = (ready.digest, ready.component, 1 + ready.modules.len());
        let unusable = |error| Unusable::Component { charm: digest, error };
        let sandbox = self.sandbox.clone();
        // It maps the code and reads the charm's files: units that run hooks are not to wait for that.
        let prepared = spawn_blocking(move || prepare(&sandbox, &ready)).await;
        let prepared = prepared.map_err(|error| unusable(error.into()))?.map_err(unusable)?;
        let loaded = Loaded { component, prepared, users: Arc::default() };
        let too_many = {
            let mut kept = self.kept();
            let held: usize = kept.values().map(|kept| kept.parts).sum();
            // Whoever still needs one loads it again.
            let too_many = if held + parts > KEPT { std::mem::take(&mut *kept) } else { BTreeMap::new() };
            let asked_at = Instant::now();
            kept.insert(digest, Kept { loaded: loaded.clone(), parts, asked_at });
            too_many
        };
        self.release(too_many).await;
        Ok(loaded)
    }

    /// Gives back what idle charms hold, for as long as the runner lives.
    pub(crate) async fn release_idle(&self) {
        loop {
            sleep(LOOK).await;
            let now = Instant::now();
            let idle = self.kept().extract_if(.., |_, kept| kept.is_idle(now)).collect();
            self.release(idle).await;
        }
    }

    /// Unmaps charms, and tells the keeper that it need not hold their code for this runner.
    async fn release(&self, charms: BTreeMap<Digest, Kept>) {
        let digests: Vec<_> = charms.keys().copied().collect();
        if digests.is_empty() {
            return;
        }
        // With a component goes the slot of memory that its last hook left. A panic would have been a destructor's.
        let _ = spawn_blocking(move || drop(charms)).await;
        for digest in digests {
            self.link.tell(ToKeeper::Released(digest)).await;
        }
    }

    fn kept(&self) -> MutexGuard<'_, BTreeMap<Digest, Kept>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
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
