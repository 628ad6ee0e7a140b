//! The end of a model's use of a charm, with the last reference to it (M-15).

use periapt_host_api::Digest;

use crate::{
    entity::{Application, ModelKey},
    root::ModelState,
    transaction::Transaction,
};

/// The number of former charms of an application that the model keeps.
const FORMER: usize = 4;

/// Returns true if an application wants a charm, or a unit runs it.
pub(crate) fn is_used(state: &ModelState, digest: &Digest) -> bool {
    state.applications().any(|application| application.charm.digest == *digest) || state.runs_charm(digest)
}

/// Notes that an application had a charm before its present one, and returns the charms that are kept for it no more.
pub(crate) fn keep_former(application: &mut Application, before: Digest) -> Vec<Digest> {
    let wanted = application.charm.digest;
    let former = &mut application.former_charms;
    former.retain(|digest| *digest != wanted && *digest != before);
    former.push(before);
    former.drain(..former.len().saturating_sub(FORMER)).collect()
}

/// Removes a charm from the model, unless it is used, or kept as a former charm of an application.
pub(crate) fn release(tx: &mut Transaction<'_>, digest: &Digest) {
    let is_kept = tx.state.applications().any(|application| application.former_charms.contains(digest));
    if tx.state.charm(digest).is_some() && !is_kept && !is_used(&tx.state, digest) {
        tx.delete(ModelKey::Charm(*digest));
    }
}
