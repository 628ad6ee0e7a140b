//! Charms and content of resources that no model uses: they are forgotten after a while, and then their blobs go.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use periapt_blobs::Blobs;
use periapt_host_api::{CharmDigest, command::Caller};
use periapt_model::{Input, Root, WorkerCommand};
use tokio::sync::{OwnedRwLockReadGuard, RwLock};

use crate::{engine::Engine, writer::Lane};

/// How long something is kept that nobody uses and nobody asks for, in milliseconds: far longer than it takes from an
/// upload to the command that it is for, and as long as an action may read what was replaced since it began.
const GRACE_MS: u64 = 3_600_000;

/// What is known of blobs of one kind besides the model. Cloning is cheap.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    notes: Mutex<Notes>,
    /// Read while a blob is kept and made known, written while one is thrown away.
    changing: Arc<RwLock<()>>,
}

#[derive(Debug, Default)]
struct Notes {
    /// Since when nobody uses a blob, as far as it was looked.
    unused: BTreeMap<CharmDigest, u64>,
    /// Blobs that were kept, and were refused afterwards, or nobody knows.
    doubtful: BTreeSet<CharmDigest>,
}

impl Shelf {
    /// Somebody looks whether the blob is here, and will go by the answer.
    pub(crate) fn asked_for(&self, digest: &CharmDigest) {
        self.notes().unused.remove(digest);
    }

    /// From before a blob is kept until it is known, so that it is not thrown away in between.
    pub(crate) async fn keeping(&self) -> OwnedRwLockReadGuard<()> {
        Arc::clone(&self.0.changing).read_owned().await
    }

    /// A blob was kept, and not taken.
    pub(crate) fn doubt(&self, digest: CharmDigest) {
        self.notes().doubtful.insert(digest);
    }

    /// What was unused for long enough, as seen now and before.
    fn due(&self, unused: &BTreeSet<CharmDigest>, now_ms: u64) -> Vec<CharmDigest> {
        let mut notes = self.notes();
        notes.unused.retain(|digest, _| unused.contains(digest));
        for digest in unused {
            notes.unused.entry(*digest).or_insert(now_ms);
        }
        let old = notes.unused.iter().filter(|(_, since)| now_ms.saturating_sub(**since) >= GRACE_MS);
        old.map(|(digest, _)| *digest).collect()
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        // Each call leaves the notes whole.
        self.0.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is kept as blobs.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kept {
    Charms,
    Resources,
}

impl Kept {
    pub(super) const ALL: [Self; 2] = [Self::Charms, Self::Resources];

    fn shelf(self, engine: &Engine) -> &Shelf {
        match self {
            Self::Charms => &engine.charms,
            Self::Resources => &engine.resources,
        }
    }

    fn blobs(self, engine: &Engine) -> &Blobs {
        match self {
            Self::Charms => &engine.blobs,
            Self::Resources => &engine.contents,
        }
    }

    fn is_known(self, root: &Root, digest: &CharmDigest) -> bool {
        match self {
            Self::Charms => root.charm(digest).is_some(),
            Self::Resources => root.resource_content(digest).is_some(),
        }
    }

    /// What is known, and used by no model.
    fn unused(self, root: &Root) -> BTreeSet<CharmDigest> {
        match self {
            Self::Charms => {
                root.charms().map(|charm| charm.digest).filter(|digest| !root.uses_charm(digest)).collect()
            }
            Self::Resources => {
                let known = root.resource_contents().map(|content| content.digest);
                let attached = root.attached_contents();
                known.filter(|digest| !attached.contains(digest)).collect()
            }
        }
    }

    fn forget(self, digest: CharmDigest) -> WorkerCommand {
        match self {
            Self::Charms => WorkerCommand::ForgetCharm(digest),
            Self::Resources => WorkerCommand::ForgetResource(digest),
        }
    }
}

/// Throws blobs away that were refused.
pub(super) async fn discard_refused(engine: &Engine, kept: Kept) {
    let shelf = kept.shelf(engine);
    let doubtful: Vec<CharmDigest> = shelf.notes().doubtful.iter().copied().collect();
    for digest in doubtful {
        let _alone = shelf.0.changing.write().await;
        let published = engine.current();
        if published.problem.is_some() {
            // What was refused because the store failed may be there once it is read again.
            return;
        }
        if !kept.is_known(&published.root, &digest)
            && let Err(error) = kept.blobs(engine).delete(&digest).await
        {
            tracing::warn!(%error, ?kept, digest = %digest.short(), "a refused blob could not be deleted");
            continue;
        }
        shelf.notes().doubtful.remove(&digest);
    }
}

/// Forgets what no model used for a while. It is forgotten before its blob goes: a crash in between leaves a blob that
/// nobody knows, never something without one.
pub(super) async fn forget_unused(engine: &Engine, kept: Kept) {
    let shelf = kept.shelf(engine);
    let due = shelf.due(&kept.unused(&engine.current().root), engine.clock.monotonic_ms());
    for digest in due {
        let _alone = shelf.0.changing.write().await;
        if !shelf.notes().unused.contains_key(&digest) {
            // Somebody has asked for it meanwhile.
            continue;
        }
        let forget = Input::Worker(kept.forget(digest));
        if let Err(refusal) = engine.commands.submit_one(Lane::Controller, &Caller::Worker, forget, 0).await {
            tracing::warn!(%refusal, ?kept, digest = %digest.short(), "what nobody uses could not be forgotten");
            continue;
        }
        if kept.is_known(&engine.current().root, &digest) {
            // A model uses it after all.
            continue;
        }
        shelf.notes().unused.remove(&digest);
        match kept.blobs(engine).delete(&digest).await {
            Ok(()) => tracing::info!(?kept, digest = %digest.short(), "what nobody used was deleted"),
            Err(error) => {
                tracing::warn!(%error, ?kept, digest = %digest.short(), "an unused blob could not be deleted");
                shelf.doubt(digest);
            }
        }
    }
}
