//! The last step of an application's removal.

use periapt_host_api::{
    ApplicationName,
    secret::{SecretOwner, SecretReader},
    status::Life,
};

use crate::{
    charm,
    entity::{Application, ModelKey, Unit},
    secret,
    transaction::Transaction,
};

/// Adds a removed unit's usage to its application's total; the model's total takes it over when the application is
/// removed.
pub(crate) fn keep_usage(tx: &mut Transaction<'_>, unit: &Unit) {
    if unit.usage.is_empty() {
        return;
    }
    if let Some(application) = tx.state.application(unit.name.application()) {
        let mut application = Application::clone(application);
        application.removed_usage.add(&unit.usage);
        tx.put(application);
    }
}

/// Removes a dying application without units and relations. Returns true if the application is gone.
pub(crate) fn remove_if_done(tx: &mut Transaction<'_>, name: &ApplicationName) -> bool {
    let Some(application) = tx.state.application(name).cloned() else { return true };
    let empty = tx.state.units_of(name).next().is_none()
        && tx.state.relations_of(name).all(|relation| relation.life == Life::Dead);
    if application.life == Life::Alive || !empty {
        return false;
    }
    tx.delete(ModelKey::Application(name.clone()));
    let mut model = tx.state.model().clone();
    model.removed_usage.add(&application.removed_usage);
    tx.put(model);
    secret::life::forget_owner(tx, &SecretOwner::Application(name.clone()));
    secret::life::forget_reader(tx, SecretReader::Application(name.clone()));
    tx.set_lease(name, None);
    for digest in application.former_charms.iter().chain([&application.charm.digest]) {
        charm::life::release(tx, digest);
    }
    true
}
