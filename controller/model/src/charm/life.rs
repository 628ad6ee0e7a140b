//! The end of a model's use of a charm, with the last reference to it (M-15).

use periapt_host_api::Digest;

use crate::{entity::ModelKey, transaction::Transaction};

/// Removes a charm from the model, unless an application wants it or a unit still runs it.
pub(crate) fn release(tx: &mut Transaction<'_>, digest: &Digest) {
    let wanted = tx.state.applications().any(|application| application.charm.digest == *digest);
    if tx.state.charm(digest).is_some() && !wanted && !tx.state.runs_charm(digest) {
        tx.delete(ModelKey::Charm(*digest));
    }
}
