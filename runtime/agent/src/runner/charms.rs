//! Components that are ready to be instantiated.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::CharmDigest;
use periapt_sandbox::{Prepared, Sandbox};
use tokio::{task::spawn_blocking, time::sleep};

use super::link::Link;
use crate::{
    backoff::Backoff,
    protocol::{Call, CallOutcome, ReadyCharm},
};

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReady {
    /// It is the charm's own fault.
    Unusable(String),
    /// The keeper does not have it yet, and tries again.
    Away(String),
}

/// A charm whose component is mapped and linked.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    /// Its component.
    pub(crate) component: CharmDigest,
    /// Ready to be instantiated, with the charm's own files.
    pub(crate) prepared: Prepared,
}

/// Charms by their digests.
#[derive(Debug)]
pub(crate) struct PreparedCharms {
    sandbox: Sandbox,
    link: Link,
    loaded: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    charms: BTreeMap<CharmDigest, Loaded>,
    /// How many compiled parts they have together.
    parts: usize,
}

impl PreparedCharms {
    /// None yet.
    pub(crate) fn new(sandbox: Sandbox, link: Link) -> Self {
        Self { sandbox, link, loaded: Mutex::default() }
    }

    /// A charm that can run, however long it takes to fetch and to compile; an error is the charm's own fault,
    /// in words for its unit's status.
    pub(crate) async fn get(&self, digest: CharmDigest) -> Result<Loaded, String> {
        let mut backoff = asking();
        loop {
            match self.ask(digest).await {
                Ok(loaded) => return Ok(loaded),
                Err(NotReady::Unusable(message)) => return Err(message),
                Err(NotReady::Away(_)) => sleep(backoff.failed()).await,
            }
        }
    }

    /// The same, asked once; the keeper takes as long as it takes to fetch and to compile it.
    pub(crate) async fn ask(&self, digest: CharmDigest) -> Result<Loaded, NotReady> {
        let known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner).charms.get(&digest).cloned();
        if let Some(loaded) = known {
            return Ok(loaded);
        }
        match self.link.call(Call::Charm(digest)).await {
            CallOutcome::Charm(ready) => self.load(ready).await.map_err(NotReady::Unusable),
            CallOutcome::Refused(refusal) => Err(NotReady::Unusable(refusal.message)),
            CallOutcome::Away { message } => Err(NotReady::Away(message)),
            CallOutcome::Answered { .. } | CallOutcome::Secret(_) | CallOutcome::Resource(_) => {
                Err(NotReady::Away("the keeper answered something else".to_owned()))
            }
        }
    }

    async fn load(&self, ready: ReadyCharm) -> Result<Loaded, String> {
        let (digest, component, parts) = (ready.digest, ready.component, 1 + ready.modules.len());
        let unusable = |error: String| format!("charm {} cannot be used: {error}", digest.short());
        let sandbox = self.sandbox.clone();
        // It maps the code and reads the charm's files: units that run hooks are not to wait for that.
        let prepared = spawn_blocking(move || prepare(&sandbox, &ready)).await;
        let prepared = prepared.map_err(|error| unusable(error.to_string()))?.map_err(unusable)?;
        let loaded = Loaded { component, prepared };
        let mut known = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if known.parts + parts > KEPT {
            // Whoever still needs one loads it again, in well under a millisecond.
            *known = Kept::default();
        }
        if known.charms.insert(digest, loaded.clone()).is_none() {
            known.parts += parts;
        }
        Ok(loaded)
    }
}

fn prepare(sandbox: &Sandbox, ready: &ReadyCharm) -> Result<Prepared, String> {
    let Some(artefact) = &ready.artefact else {
        return Err("its compiled component did not come".to_owned());
    };
    let mut modules = Vec::new();
    for module in &ready.modules {
        let Some(artefact) = &module.artefact else {
            return Err("a module of its component did not come".to_owned());
        };
        modules.push((module.digest, artefact.clone()));
    }
    let native = sandbox.load(artefact, &modules).map_err(|error| error.to_string())?;
    sandbox.prepare(&native, Some(&ready.directory)).map_err(|error| error.to_string())
}
