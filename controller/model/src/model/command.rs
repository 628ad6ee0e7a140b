//! The commands that create, configure and destroy models.

use std::collections::BTreeMap;

use periapt_host_api::{
    ErrorCode, ModelName, ModelUuid, Refusal,
    access::ModelAccess,
    command::{Answer, Caller, Force},
    constraints::{AgentConstraints, KeptConstraints},
    network::Spaces,
    settings::ModelSettings,
    status::Life,
    storage::StorageEnd,
    usage::Usage,
};

use super::{cleanup, config};
use crate::{
    access::check::{active_user, denied},
    application::quota,
    controller::level,
    entity::{EntityKey, Model, ModelGrant, ModelKey, Work},
    input::Environment,
    root::{Root, changes::Changes},
    transaction::Transaction,
};

pub(crate) fn add(
    root: &Root,
    caller: &Caller,
    name: &ModelName,
    settings: &BTreeMap<String, String>,
    env: &Environment,
) -> Result<(Changes, Answer), Refusal> {
    let user = active_user(root, caller).ok_or_else(denied)?;
    let owner = &user.name;
    if root.is_name_taken(owner, name) {
        return Err(Refusal::already_exists(format!("model {:?} already exists", name.as_str()))
            .about(format!("model {name}")));
    }
    let uuid = ModelUuid(env.uuid());
    if root.model_or_remains(&uuid).is_some() {
        return Err(Refusal::new(ErrorCode::TryAgain, "the drawn model id is taken"));
    }
    let settings = config::change_model(&ModelSettings::default(), settings, &[])?;
    level::check_settings(root, &settings)?;
    let model = Model {
        uuid,
        name: name.clone(),
        owner: owner.clone(),
        life: Life::Alive,
        settings,
        constraints: AgentConstraints::default(),
        kept_constraints: KeptConstraints::default(),
        storage_end: None,
        removed_usage: Usage::default(),
        spaces: Spaces::default(),
        ssh_keys: Vec::new(),
        migration: None,
        arrived: None,
        created_at: env.now,
        life_since: env.now,
    };
    let grant = ModelGrant { user: owner.clone(), user_uuid: user.uuid, access: ModelAccess::Admin };
    let mut changes = Changes::default();
    changes.puts.insert(EntityKey::InModel(uuid, ModelKey::Model), Some(model.into()));
    changes.puts.insert(EntityKey::InModel(uuid, ModelKey::Grant(owner.clone())), Some(grant.into()));
    Ok((changes, Answer::Model { uuid }))
}

pub(crate) fn destroy(
    tx: &mut Transaction<'_>,
    force: Option<Force>,
    storage: Option<StorageEnd>,
) -> Result<Answer, Refusal> {
    let mut model = tx.state.model().clone();
    model.storage_end = storage.or(model.storage_end);
    let count = tx.state.storages().count();
    if count > 0 && model.storage_end.is_none() {
        let plural = if count == 1 { "" } else { "s" };
        let text = format!(
            "cannot destroy model {:?}: it has {count} instance{plural} of storage; say what becomes of them, by \
             --destroy-storage or --release-storage",
            model.name.as_str()
        );
        return Err(Refusal::conflict(text).about(format!("model {}", model.name)));
    }
    let connected = tx.state.offers().filter(|offer| tx.state.connections(offer).next().is_some()).count();
    if connected > 0 && force.is_none() && model.life == Life::Alive {
        let plural = if connected == 1 { "" } else { "s" };
        let text = format!(
            "cannot destroy model {:?}: it hosts {connected} application offer{plural} that other models consume; \
             remove their relations first, or use --force",
            model.name.as_str()
        );
        return Err(Refusal::conflict(text).about(format!("model {}", model.name)));
    }
    if model.life == Life::Alive {
        model.life = Life::Dying;
        model.life_since = tx.now();
    }
    tx.put(model);
    if let Some(force) = force {
        // An operator may add force in a later request.
        let due = tx.force_due(force);
        tx.add_work(Work::ForceModel, Some(due));
    }
    let waits_for = cleanup::waits_for(&tx.state);
    Ok(Answer::Removal { gone: false, waits_for })
}

pub(crate) fn set_config(
    tx: &mut Transaction<'_>,
    caller: &Caller,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<Answer, Refusal> {
    quota::check_rights(tx.root, caller, set.keys().chain(reset))?;
    let mut model = tx.state.model().clone();
    model.settings = config::change_model(&model.settings, set, reset)?;
    level::check_settings(tx.root, &model.settings)?;
    tx.put(model);
    Ok(Answer::Done)
}

/// Changes the settings of all models that do not set them themselves. They apply at once, and no model is written.
pub(crate) fn set_defaults(
    root: &Root,
    set: &BTreeMap<String, String>,
    reset: &[String],
) -> Result<(Changes, Answer), Refusal> {
    let not_started = || Refusal::new(ErrorCode::TryAgain, "the controller has not started yet");
    let mut controller = root.controller().ok_or_else(not_started)?.clone();
    let before = controller.model_defaults.clone();
    controller.model_defaults = config::change_model(&before, set, reset)?;
    level::check_settings(root, &controller.model_defaults)?;
    let mut changes = Changes::default();
    if controller.model_defaults != before {
        changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    }
    Ok((changes, Answer::Done))
}
