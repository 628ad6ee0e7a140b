//! The deletion of unused charms and content of resources: the model forgets them after a while, then their blobs are
//! deleted.

mod shared;

use std::collections::BTreeSet;

use periapt_host_api::{Digest, command::Caller};
use periapt_model::{Input, Root, WorkerCommand};

use super::Pruner;
use crate::{
    state::{BlobKind, Contents},
    writer::QueueKey,
};

impl BlobKind {
    fn contents(self, pruner: &Pruner) -> &Contents {
        match self {
            Self::Charm => &pruner.charms.contents,
            Self::Resource => &pruner.resources.contents,
        }
    }

    /// Returns the registered contents that neither a model nor another content uses. Parts of a content are unused once it
    /// is forgotten.
    fn unused(self, root: &Root) -> BTreeSet<Digest> {
        match self {
            Self::Charm => {
                root.charms().map(|charm| charm.digest).filter(|digest| !root.uses_charm(digest)).collect()
            }
            Self::Resource => {
                let known = root.resource_contents().map(|content| content.digest);
                known.filter(|digest| !root.uses_content(digest)).collect()
            }
        }
    }

    fn forget(self, digest: Digest) -> WorkerCommand {
        match self {
            Self::Charm => WorkerCommand::ForgetCharm(digest),
            Self::Resource => WorkerCommand::ForgetResource(digest),
        }
    }
}

/// Has the model forget an unused blob. Returns true if it has.
async fn forget(pruner: &Pruner, kind: BlobKind, digest: Digest) -> bool {
    let input = Input::Worker(kind.forget(digest));
    let forgotten = pruner.commands.submit_one(QueueKey::Controller, &Caller::Worker, input, 0).await;
    if let Err(refusal) = &forgotten {
        tracing::warn!(%refusal, ?kind, digest = %digest.short(), "the record of an unused blob could not be deleted");
    }
    forgotten.is_ok()
}

/// Deletes stored blobs that turn out to be unregistered. Among several controllers a command that was refused here may
/// still be carried out by another one, so [`forget_unused`] does it after a while.
pub(super) async fn discard_refused(pruner: &Pruner, kind: BlobKind) {
    let Contents { blobs, collector, copies, .. } = kind.contents(pruner);
    for digest in collector.refused() {
        if copies.are_made() || blobs.place().is_some() {
            collector.forget_refused(&digest);
            continue;
        }
        let _alone = collector.lock_for_deletion().await;
        let published = pruner.durable.current();
        if published.problem.is_some() {
            // A command that failed with the store may have been stored. The next load shows it.
            return;
        }
        if !kind.is_blob(&published.root, &digest)
            && let Err(error) = blobs.delete(&digest).await
        {
            tracing::warn!(%error, ?kind, digest = %digest.short(), "a refused blob could not be deleted");
            continue;
        }
        collector.forget_refused(&digest);
    }
}

/// Forgets and deletes blobs that no model used for a while. The model forgets first: a crash in between leaves an
/// unregistered blob, which the next search finds, never a registered entity without its blob. Among several controllers
/// the one that leads forgets, and each deletes its own blob afterwards.
pub(super) async fn forget_unused(pruner: &Pruner, kind: BlobKind) {
    let Contents { blobs, collector, copies, .. } = kind.contents(pruner);
    if blobs.place().is_some() {
        return shared::forget_unused(pruner, kind).await;
    }
    let root = &pruner.durable.current().root;
    let stored = match blobs.digests().await {
        Ok(stored) => stored,
        Err(error) => return tracing::warn!(%error, ?kind, "the stored blobs could not be listed"),
    };
    let unregistered = stored.into_iter().filter(|digest| !kind.is_blob(root, digest));
    let leads = || pruner.role.borrow().leads_in().is_some();
    let forgettable = if leads() { kind.unused(root) } else { BTreeSet::new() };
    let unused = unregistered.chain(forgettable.iter().copied()).collect();
    for digest in collector.due(&unused, pruner.clock.monotonic_ms()) {
        let _alone = collector.lock_for_deletion().await;
        if !collector.is_unused(&digest) {
            // A client has requested the blob meanwhile.
            continue;
        }
        if forgettable.contains(&digest)
            && kind.is_known(&pruner.durable.current().root, &digest)
            && leads()
            && !forget(pruner, kind, digest).await
        {
            continue;
        }
        if !copies.is_up_to_date().await || pruner.durable.current().problem.is_some() {
            // Each of them may be used, as far as this controller knows. Uploads do not wait for more attempts.
            return;
        }
        if kind.is_blob(&pruner.durable.current().root, &digest) {
            // A model uses it after all.
            continue;
        }
        collector.forget(&digest);
        match blobs.delete(&digest).await {
            Ok(()) => tracing::info!(?kind, digest = %digest.short(), "an unused blob was deleted"),
            Err(error) => {
                tracing::warn!(%error, ?kind, digest = %digest.short(), "an unused blob could not be deleted");
            }
        }
    }
}
