//! A charm goes from a model with the last that refers to it (M-15).

use periapt_host_api::Digest;

use crate::{entity::ModelKey, transaction::Transaction};

/// Forgets a charm unless an application wants it or a unit still runs it.
pub(crate) fn release(tx: &mut Transaction<'_>, digest: &Digest) {
    let wanted = tx.state.applications().any(|application| application.charm.digest == *digest);
    if tx.state.charm(digest).is_some() && !wanted && !tx.state.runs_charm(digest) {
        tx.delete(ModelKey::Charm(*digest));
    }
}
