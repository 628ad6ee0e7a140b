//! The controller's first start.

use periapt_host_api::{cloud::Kept, settings::ModelSettings};

use crate::{
    entity::{Controller, EntityKey},
    input::Environment,
    root::{Root, changes::Changes},
};

pub(crate) fn initialize(root: &Root, name: &str, env: &Environment) -> Changes {
    let mut changes = Changes::default();
    if root.controller().is_none() {
        let controller = Controller {
            uuid: env.uuid(),
            name: name.to_owned(),
            model_defaults: ModelSettings::default(),
            kept: Kept::default(),
            created_at: env.now,
        };
        changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    }
    changes
}
