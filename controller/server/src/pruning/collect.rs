//! The deletion of unused charms and content of resources: the model forgets them after a while, then their blobs are
//! deleted.

use std::collections::BTreeSet;

use periapt_host_api::{Digest, command::Caller};
use periapt_model::{Input, Root, WorkerCommand};

use super::Pruner;
use crate::{state::Contents, writer::QueueKey};

/// The kinds of blobs.
#[derive(Debug, Clone, Copy)]
pub(super) enum BlobKind {
    Charms,
    Resources,
}

impl BlobKind {
    pub(super) const ALL: [Self; 2] = [Self::Charms, Self::Resources];

    fn contents(self, pruner: &Pruner) -> &Contents {
        match self {
            Self::Charms => &pruner.charms.contents,
            Self::Resources => &pruner.resources.contents,
        }
    }

    fn is_known(self, root: &Root, digest: &Digest) -> bool {
        match self {
            Self::Charms => root.charm(digest).is_some(),
            Self::Resources => root.resource_content(digest).is_some(),
        }
    }

    /// Returns the registered blobs that no model uses.
    fn unused(self, root: &Root) -> BTreeSet<Digest> {
        match self {
            Self::Charms => {
                root.charms().map(|charm| charm.digest).filter(|digest| !root.uses_charm(digest)).collect()
            }
            Self::Resources => {
                let known = root.resource_contents().map(|content| content.digest);
                known.filter(|digest| !root.is_attached(digest)).collect()
            }
        }
    }

    fn forget(self, digest: Digest) -> WorkerCommand {
        match self {
            Self::Charms => WorkerCommand::ForgetCharm(digest),
            Self::Resources => WorkerCommand::ForgetResource(digest),
        }
    }
}

/// Deletes stored blobs that turn out to be unregistered.
pub(super) async fn discard_refused(pruner: &Pruner, kind: BlobKind) {
    let Contents { blobs, collector, .. } = kind.contents(pruner);
    for digest in collector.refused() {
        let _alone = collector.lock_for_deletion().await;
        let published = pruner.durable.current();
        if published.problem.is_some() {
            // A command that failed with the store may have been stored. The next load shows it.
            return;
        }
        if !kind.is_known(&published.root, &digest)
            && let Err(error) = blobs.delete(&digest).await
        {
            tracing::warn!(%error, ?kind, digest = %digest.short(), "a refused blob could not be deleted");
            continue;
        }
        collector.forget_refused(&digest);
    }
}

/// Forgets and deletes blobs that no model used for a while. The model forgets first: a crash in between leaves an
/// unregistered blob, never a registered entity without its blob.
pub(super) async fn forget_unused(pruner: &Pruner, kind: BlobKind) {
    let Contents { blobs, collector, .. } = kind.contents(pruner);
    let due = collector.due(&kind.unused(&pruner.durable.current().root), pruner.clock.monotonic_ms());
    for digest in due {
        let _alone = collector.lock_for_deletion().await;
        if !collector.is_unused(&digest) {
            // A client has requested the blob meanwhile.
            continue;
        }
        let forget = Input::Worker(kind.forget(digest));
        if let Err(refusal) =
            pruner.commands.submit_one(QueueKey::Controller, &Caller::Worker, forget, 0).await
        {
            tracing::warn!(%refusal, ?kind, digest = %digest.short(), "the record of an unused blob could not be deleted");
            continue;
        }
        if kind.is_known(&pruner.durable.current().root, &digest) {
            // A model uses it after all.
            continue;
        }
        collector.forget(&digest);
        match blobs.delete(&digest).await {
            Ok(()) => tracing::info!(?kind, digest = %digest.short(), "an unused blob was deleted"),
            Err(error) => {
                tracing::warn!(%error, ?kind, digest = %digest.short(), "an unused blob could not be deleted");
                collector.note_refused(digest);
            }
        }
    }
}
