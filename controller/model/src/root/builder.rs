//! The building of a state from stored entities, as they are read.

use periapt_host_api::Revision;

use super::{LoadError, Root};
use crate::entity::{Entity, EntityKey, ModelKey};

/// A state that is built from stored entities, given one after the other in any order.
///
/// Entities of a model wait until the model itself has come. A store gives each model first, so none waits there, and each
/// entity is held once.
#[derive(Debug, Default)]
pub struct RootBuilder {
    root: Root,
    /// The entities whose model has not come.
    waiting: Vec<(EntityKey, Entity)>,
}

impl RootBuilder {
    /// Adds an entity.
    ///
    /// # Errors
    /// [`LoadError::Misplaced`]
    pub fn add(&mut self, key: EntityKey, entity: Entity) -> Result<(), LoadError> {
        if !entity.stands_under(&key) {
            return Err(LoadError::Misplaced(Box::new(key)));
        }
        let waits = matches!(
            &key,
            EntityKey::InModel(model, inner)
                if *inner != ModelKey::Model && !self.root.models.contains_key(model)
        );
        if waits {
            self.waiting.push((key, entity));
        } else {
            self.root.put(&key, Some(&entity));
        }
        Ok(())
    }

    /// Returns the state of all entities at a revision.
    ///
    /// # Errors
    /// [`LoadError::Orphan`]
    pub fn finish(self, revision: Revision) -> Result<Root, LoadError> {
        let Self { mut root, waiting } = self;
        root.revision = revision;
        for (key, entity) in waiting {
            if let EntityKey::InModel(model, _) = &key
                && !root.models.contains_key(model)
            {
                return Err(LoadError::Orphan(Box::new(key)));
            }
            root.put(&key, Some(&entity));
        }
        root.note_all_crossings();
        Ok(root)
    }
}
