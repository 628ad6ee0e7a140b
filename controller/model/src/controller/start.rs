//! The controller's first start, and the first one with users.

use std::collections::BTreeMap;

use periapt_host_api::{LEVEL, Refusal, cloud::StoredClouds, settings::ModelSettings};

use crate::{
    entity::{Controller, EntityKey},
    input::Environment,
    root::{Root, changes::Changes},
    user,
};

/// Makes the controller and its first user, if they do not exist. Stores of earlier forms have no users.
pub(crate) fn initialize(root: &Root, name: &str, env: &Environment) -> Result<Changes, Refusal> {
    let mut changes = Changes::default();
    if root.controller().is_none() {
        let controller = Controller {
            uuid: env.uuid(),
            name: name.to_owned(),
            model_defaults: ModelSettings::default(),
            kept: StoredClouds::default(),
            level: LEVEL,
            members: BTreeMap::new(),
            program: None,
            created_at: env.now,
        };
        changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    }
    if root.users().next().is_none() {
        let first = user::account::first(env)?;
        changes.puts.insert(EntityKey::User(first.name.clone()), Some(first.into()));
    }
    Ok(changes)
}
