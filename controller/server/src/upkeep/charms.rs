//! Charms that no model uses: they are forgotten after a while, and then their archives go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use periapt_host_api::{CharmDigest, command::Caller};
use periapt_model::{Input, Root, WorkerCommand};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::{engine::Engine, writer::Lane};

/// How long a charm is kept that nobody uses and nobody asks for, in milliseconds: far longer than it takes from an
/// upload to the command that it is for.
const GRACE_MS: u64 = 3_600_000;

/// What is known of charms besides the model. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notes: Mutex<Notes>,
    /// Read while an archive is kept and made known, written while one is thrown away.
    changing: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// Since when nobody uses a charm, as far as it was looked.
    unused: BTreeMap<CharmDigest, u64>,
    /// Archives that were kept, and whose charms were refused afterwards, or nobody knows.
    doubtful: BTreeSet<CharmDigest>,
}

impl Shelf {
    /// Somebody looks whether the charm is here, and will go by the answer.
    pub(crate) fn asked_for(&self, digest: &CharmDigest) {
        self.notes().unused.remove(digest);
    }

    /// From before an archive is kept until its charm is known, so that it is not thrown away in between.
    pub(crate) async fn keeping(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0.changing).read_owned().await
    }

    /// An archive was kept, and its charm was not taken.
    pub(crate) fn doubt(&self, digest: CharmDigest) {
        self.notes().doubtful.insert(digest);
    }

    /// Charms that were unused for long enough, as seen now and before.
    fn due(&self, root: &Root, now_ms: u64) -> Vec<CharmDigest> {
        let unused: BTreeSet<CharmDigest> =
            root.charms().map(|charm| charm.digest).filter(|digest| !root.uses_charm(digest)).collect();
        let mut notes = self.notes();
        notes.unused.retain(|digest, _| unused.contains(digest));
        for digest in unused {
            notes.unused.entry(digest).or_insert(now_ms);
        }
        let old = notes.unused.iter().filter(|(_, since)| now_ms.saturating_sub(**since) >= GRACE_MS);
        old.map(|(digest, _)| *digest).collect()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Each call leaves the notes whole.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Throws archives away whose charms were refused.
pub(super) async fn discard_refused(engine: &Engine) {
    let doubtful: Vec<CharmDigest> = engine.shelf.notes().doubtful.iter().copied().collect();
    for digest in doubtful {
        let _alone = engine.shelf.0.changing.write().await;
        let published = engine.current();
        if published.problem.is_some() {
            // A charm that was refused because the store failed may be there once it is read again.
            return;
        }
        if published.root.charm(&digest).is_none()
            && let Err(error) = engine.blobs.delete(&digest).await
        {
            tracing::warn!(%error, charm = %digest.short(), "a refused archive could not be deleted");
            continue;
        }
        engine.shelf.notes().doubtful.remove(&digest);
    }
}

/// Forgets charms that no model used for a while. The charm goes before its archive: a crash in between leaves an
/// archive that nobody knows, never a charm without one.
pub(super) async fn forget_unused(engine: &Engine) {
    let due = engine.shelf.due(&engine.current().root, engine.clock.monotonic_ms());
    for digest in due {
        let _alone = engine.shelf.0.changing.write().await;
        if !engine.shelf.notes().unused.contains_key(&digest) {
            // Somebody has asked for it meanwhile.
            continue;
        }
        let forget = Input::Worker(WorkerCommand::ForgetCharm(digest));
        if let Err(refusal) = engine.commands.submit_one(Lane::Controller, &Caller::Worker, forget, 0).await {
            tracing::warn!(%refusal, charm = %digest.short(), "an unused charm could not be forgotten");
            continue;
        }
        if engine.current().root.charm(&digest).is_some() {
            // A model uses it after all.
            continue;
        }
        engine.shelf.notes().unused.remove(&digest);
        match engine.blobs.delete(&digest).await {
            Ok(()) => tracing::info!(charm = %digest.short(), "a charm that nobody used was deleted"),
            Err(error) => {
                tracing::warn!(%error, charm = %digest.short(), "an unused archive could not be deleted");
                engine.shelf.doubt(digest);
            }
        }
    }
}
