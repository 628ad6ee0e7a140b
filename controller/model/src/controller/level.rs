//! The level of what is stored, and its raise.

use periapt_host_api::{LEVEL, Level};

use crate::{
    entity::EntityKey,
    root::{Root, changes::Changes},
};

impl Root {
    /// Returns the level of what is stored.
    pub fn level(&self) -> Level {
        self.controller().map(|controller| controller.level).unwrap_or_default()
    }
}

/// Raises the level, but not above what this program knows. Changes nothing if it is as high already.
pub(crate) fn raise(root: &Root, level: Level) -> Changes {
    let mut changes = Changes::default();
    let Some(controller) = root.controller().filter(|controller| controller.level < level.min(LEVEL)) else {
        return changes;
    };
    let mut controller = controller.clone();
    controller.level = level.min(LEVEL);
    changes.puts.insert(EntityKey::Controller, Some(controller.into()));
    changes
}
