//! The end of a remote application: it is deleted with its last relation.

use periapt_host_api::{ApplicationName, status::Life};

use crate::{
    entity::{ModelKey, RemoteSource},
    transaction::Transaction,
};

/// Deletes a remote application without relations: a consumer at once, a consumed offer if it is dying.
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
