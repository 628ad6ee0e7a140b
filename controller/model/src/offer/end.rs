//! How an application of another model ends: with its last relation.

use periapt_host_api::{ApplicationName, status::Life};

use crate::{
    entity::{ModelKey, RemoteSource},
    transaction::Transaction,
};

/// A consumed offer that is dying goes with its last relation, a consumer as soon as it has none.
pub(crate) fn remove_if_done(tx: &mut Transaction<'_>, name: &ApplicationName) {
    let Some(remote) = tx.state.remote_application(name).cloned() else { return };
    let wanted = match remote.source {
        RemoteSource::Offer { .. } => remote.life == Life::Alive,
        RemoteSource::Consumer { .. } => false,
    };
    if !wanted && tx.state.relations_of(name).all(|relation| relation.life == Life::Dead) {
        tx.delete(ModelKey::RemoteApplication(name.clone()));
    }
}
