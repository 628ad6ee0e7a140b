//! What follows from the declaration of kinds ([`kinds`]): their tables, how entities are found, put and deleted, what
//! differs between two states, and all that a model has.

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
        /// All entities of a model but the model itself, a table a kind.
        #[derive(Debug, Clone, Default)]
        pub(super) struct Tables {
            $($(#[$doc])* pub(super) $table: $shape<entity::$kind>,)*
        }

        /// What differs between two states of a model, kind by kind, as far as anybody sees it.
        #[derive(Debug, Default)]
        pub(crate) struct Changes<'a> {
            $($(pub(crate) $seen: Vec<Change<'a, entity::$kind>>,)?)*
        }

        impl Tables {
            /// What differs in later tables of the same model. Shared parts are passed over unseen, so the cost is that of the
            /// difference.
            pub(super) fn changes<'a>(&'a self, newer: &'a Self) -> Changes<'a> {
                Changes { $($($seen: self.$seen.changes(&newer.$seen),)?)* }
            }
        }

        impl ModelState {
            /// The entity under a key.
            pub(crate) fn get(&self, key: &ModelKey) -> Option<Entity> {
                match key {
                    ModelKey::Model => Some(Entity::Model(Arc::clone(&self.model))),
                    $(ModelKey::$key($($field),+) => {
                        let key = ($(Clone::clone($field)),+);
                        self.tables.$table.find(&key).map(|found| Entity::$kind(Arc::clone(found)))
                    })*
                }
            }

            /// Puts an entity in its place or takes it away, and keeps what is derived from it in step. A model goes with
            /// all its state: see the root.
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

            /// The keys of all that the model has, but for the model itself.
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
