//! The deletion of unused blobs in an object store that several controllers share: the one that leads does it alone.
//!
//! An object is deleted if, after the list was read, the log confirms that this controller leads and has applied all of it,
//! no model uses the object's blob, and the object is older than any upload that still relies on it. An upload of the same
//! bytes makes an object of another name (`periapt_blobs`), so a deletion that is late deletes nothing that was stored since.

use std::collections::{BTreeMap, BTreeSet};

use periapt_blobs::StoredObject;
use periapt_host_api::Digest;

use super::{super::Pruner, forget};
use crate::state::{BlobKind, Contents};

/// The most objects that are deleted before the term is confirmed again.
const BATCH: usize = 50;

/// Forgets blobs that no model used for a while, and deletes the objects of forgotten ones.
pub(super) async fn forget_unused(pruner: &Pruner, kind: BlobKind) {
    let Contents { blobs, collector, .. } = kind.contents(pruner);
    if pruner.role.borrow().leads_in().is_none() {
        return;
    }
    let objects = match blobs.objects().await {
        Ok(objects) => objects,
        Err(error) => return tracing::warn!(%error, ?kind, "the stored blobs could not be listed"),
    };
    let mut of: BTreeMap<Digest, Vec<StoredObject>> = BTreeMap::new();
    for object in objects {
        of.entry(object.digest).or_default().push(object);
    }
    if !leads(pruner, kind).await {
        return;
    }
    let root = &pruner.durable.current().root;
    let unregistered = of.keys().filter(|digest| !kind.is_blob(root, digest)).copied();
    let forgettable = kind.unused(root);
    let unused: BTreeSet<Digest> = unregistered.chain(forgettable.iter().copied()).collect();
    let mut garbage = Vec::new();
    for digest in collector.due(&unused, pruner.clock.monotonic_ms()) {
        if !collector.is_unused(&digest) {
            // A client has requested the blob meanwhile.
            continue;
        }
        if forgettable.contains(&digest) {
            if forget(pruner, kind, digest).await {
                // Its objects stay for the same time again, for readers of the other controllers.
                collector.forget(&digest);
            }
            continue;
        }
        garbage.extend(of.remove(&digest).unwrap_or_default());
    }
    let now_ms = pruner.clock.now().as_millisecond();
    garbage.retain(|object| object.is_old(now_ms));
    for (digest, all) in of.into_iter().filter(|(digest, _)| kind.is_blob(root, digest)) {
        let surplus = surplus(all, now_ms);
        // If the newest is damaged, readers take an older one.
        if !surplus.is_empty() && matches!(blobs.is_intact(&digest).await, Ok(true)) {
            garbage.extend(surplus);
        }
    }
    for batch in garbage.chunks(BATCH) {
        if !leads(pruner, kind).await {
            return;
        }
        for object in batch {
            delete(pruner, kind, object).await;
        }
    }
}

/// Returns the objects of a registered blob that newer ones have made needless. A reader may still have an old one open, so
/// they stay until the newest one is old, too.
fn surplus(mut objects: Vec<StoredObject>, now_ms: i64) -> Vec<StoredObject> {
    objects.sort_by_key(|object| object.since_ms);
    let Some(newest) = objects.pop().filter(|newest| newest.is_old(now_ms)) else { return Vec::new() };
    objects.retain(|object| object.since_ms < newest.since_ms);
    objects
}

async fn delete(pruner: &Pruner, kind: BlobKind, object: &StoredObject) {
    let Contents { blobs, collector, .. } = kind.contents(pruner);
    let digest = object.digest;
    match blobs.delete_object(object).await {
        Ok(()) => {
            tracing::info!(?kind, digest = %digest.short(), "an unused blob was deleted from the shared store");
            collector.forget(&digest);
        }
        Err(error) => {
            tracing::warn!(%error, ?kind, digest = %digest.short(), "an unused blob could not be deleted");
        }
    }
}

/// Returns true if this controller leads, as the log confirms, and has applied all of it.
async fn leads(pruner: &Pruner, kind: BlobKind) -> bool {
    let Contents { copies, .. } = kind.contents(pruner);
    let Some(term) = pruner.role.borrow().leads_in() else { return false };
    copies.is_up_to_date().await && copies.confirms(term).await && pruner.durable.current().problem.is_none()
}
