//! The commands that configure, trust and remove applications.

use std::collections::BTreeMap;

use periapt_host_api::{
    ApplicationName, Refusal,
    command::{Answer, Force},
    storage::UnitStorage,
};

use super::{config, life};
use crate::{controller::level, entity::Application, offer, secret, transaction::Transaction};

pub(crate) fn set_config(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    let meta = tx.charm_meta(&application)?;
    let about = |refusal: Refusal| refusal.about(format!("application {name}"));
    let (set, reset) = config::change_application(&mut application, meta, set, reset).map_err(about)?;
    level::check_limits(tx.root, &application.budgets).map_err(about)?;
    let before = application.config.clone();
    application.config = config::change(meta, &before, &set, &reset).map_err(about)?;
    secret::command::check_options(&tx.state, &mut application.config, set.keys()).map_err(about)?;
    if application.config != before {
        application.settings_version = application.settings_version.saturating_add(1);
    }
    application.config_hash = config::config_hash(meta, &application.config, application.charm);
    tx.put(application);
    Ok(Answer::Done)
}

pub(crate) fn set_trust(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    trust: bool,
) -> Result<Answer, Refusal> {
    let mut application = Application::clone(&*tx.application(name)?);
    application.trust = trust;
    application.trust_hash = config::trust_hash(trust);
    tx.put(application);
    Ok(Answer::Done)
}

pub(crate) fn remove(
    tx: &mut Transaction<'_>,
    name: &ApplicationName,
    force: Option<Force>,
    storage: UnitStorage,
) -> Result<Answer, Refusal> {
    let application = tx.application(name)?;
    let consumers = offer::life::connection_count(&tx.state, name);
    if consumers > 0 && force.is_none() {
        // L-3
        let plural = if consumers == 1 { "" } else { "s" };
        let text = format!(
            "cannot destroy application {:?}: application is used by {consumers} consumer{plural}",
            name.as_str()
        );
        return Err(Refusal::conflict(text).about(format!("application {name}")));
    }
    life::destroy(tx, &application, force, storage);
    Ok(match tx.state.application(name) {
        None => Answer::Removal { gone: true, waits_for: Vec::new() },
        Some(application) => {
            Answer::Removal { gone: false, waits_for: life::waits_for(&tx.state, application) }
        }
    })
}
