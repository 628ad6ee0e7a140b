//! The code that is generated from the declaration of kinds ([`kinds`]): the tables, lookup, put and delete, the
//! differences of two states, and the list of a model's keys.

use std::sync::Arc;

use super::{
    ModelState,
    derived::{SecretDue, derive, size},
    hosted, secrets,
    table::{Change, Flat, Nested},
};
use crate::entity::{self, Entity, ModelKey, PART_BYTES, kinds};

macro_rules! tables {
    (
        controller $controller:tt
        model {
            $($(#[$doc:meta])* $kind:ident: $key:ident($($field:ident: $type:ty),+) {
                table $table:ident: $shape:ident;
                $(seen $seen:ident $(as $view:ident)?;)?
                $(derive $derived:ident by $parts:expr;)*
                $(then $then:path;)?
            })*
        }
    ) => {
        /// All entities of a model except the model itself, one table for each kind.
        #[derive(Debug, Clone, Default)]
        pub(super) struct Tables {
            $($(#[$doc])* pub(super) $table: $shape<entity::$kind>,)*
        }

        /// The differences between two states of a model, for each kind that views show.
        #[derive(Debug, Default)]
        pub(crate) struct Changes<'a> {
            $($(pub(crate) $seen: Vec<Change<'a, entity::$kind>>,)?)*
        }

        impl Tables {
            /// Returns the differences to later tables of the same model. Shared parts of the maps are skipped, so
            /// the cost depends on the size of the difference.
            pub(super) fn changes<'a>(&'a self, newer: &'a Self) -> Changes<'a> {
                Changes { $($($seen: self.$seen.changes(&newer.$seen),)?)* }
            }
        }

        impl ModelState {
            /// Returns the entity under a key.
            pub(crate) fn get(&self, key: &ModelKey) -> Option<Entity> {
                match key {
                    ModelKey::Model => Some(Entity::Model(Arc::clone(&self.model))),
                    $(ModelKey::$key($($field),+) => {
                        let key = ($(Clone::clone($field)),+);
                        self.tables.$table.find(&key).map(|found| Entity::$kind(Arc::clone(found)))
                    })*
                }
            }

            /// Puts or deletes an entity, and updates the derived data. The model's own entity is only replaced here;
            /// the root deletes it with all its state.
            pub(crate) fn put(&mut self, key: &ModelKey, entity: Option<&Entity>) {
                match key {
                    ModelKey::Model => {
                        if let Some(Entity::Model(model)) = entity {
                            self.set_model(Arc::clone(model));
                        }
                    }
                    $(ModelKey::$key($($field),+) => {
                        let key = ($(Clone::clone($field)),+);
                        let new = match entity {
                            Some(Entity::$kind(new)) => Some(new),
                            _ => None,
                        };
                        let old = self.tables.$table.put(&key, new);
                        let (_old, _new) = (old.as_deref(), new.map(Arc::as_ref));
                        $(derive(&mut self.derived.$derived, _old, _new, $parts);)*
                        $($then(self, _old, _new);)?
                    })*
                }
            }

            /// Returns the keys of all entities of the model, except the model's own.
            pub(crate) fn keys(&self) -> impl Iterator<Item = ModelKey> {
                std::iter::empty()
                    $(.chain(self.tables.$table.all().map(|found| {
                        ModelKey::$key($(Clone::clone(&found.$field)),+)
                    })))*
            }
        }
    };
}

kinds!(tables);
