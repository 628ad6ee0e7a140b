//! The code for views that is generated from the declaration of kinds ([`kinds`]).

use std::sync::Arc;

use periapt_host_api::{
    UnitName,
    view::{View, ViewEntity, ViewKey},
};

use super::{HasView, RunnerEntities};
use crate::{
    entity::{self, Kind, kinds},
    root::{ModelState, StateDifferences},
};

macro_rules! views {
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
        impl RunnerEntities<'_> {
            /// Adds the entities of a unit that have a view of their own.
            pub(super) fn add_kinds_of(&self, unit: &UnitName, view: &mut View) {
                $($($(for entity in <entity::$kind as HasView>::of_unit(self.state, unit) {
                    self.show(entity, ViewEntity::$view, ViewKey::$view, view);
                })?)?)*
            }

            /// Adds the entities with a view of their own that belong to no unit of the runner.
            pub(super) fn add_kinds_beside(&self, view: &mut View) {
                $($($(for entity in <entity::$kind as HasView>::beside(self) {
                    self.show(entity, ViewEntity::$view, ViewKey::$view, view);
                })?)?)*
            }

            /// Updates the entities of a unit that is no longer the runner's: they leave the view unless another rule
            /// shows them.
            pub(super) fn take_kinds_of(&self, old: &ModelState, unit: &UnitName, view: &mut View) {
                $($($(for entity in <entity::$kind as HasView>::of_unit(old, unit) {
                    self.show(entity, ViewEntity::$view, ViewKey::$view, view);
                })?)?)*
            }

            /// Updates the changed entities that have a view of their own.
            pub(super) fn follow_kinds(&self, differences: &StateDifferences<'_>, view: &mut View) {
                $($($(for change in &differences.all.$seen {
                    match (change.new, change.old) {
                        (Some(entity), _) => self.show(entity, ViewEntity::$view, ViewKey::$view, view),
                        (None, Some(gone)) => view.delete(&ViewKey::$view(gone.key())),
                        (None, None) => {}
                    }
                })?)?)*
            }
        }
    };
}

kinds!(views);

impl RunnerEntities<'_> {
    /// Puts an entity into the view, or removes it if the runner does not see it.
    pub(super) fn show<V: HasView>(
        &self,
        entity: &Arc<V>,
        seen_as: fn(V::View) -> ViewEntity,
        key: fn(V::Key) -> ViewKey,
        view: &mut View,
    ) {
        match entity.seen(self) {
            Some(seen) => view.put(seen_as(seen)),
            None => view.delete(&key(entity.key())),
        }
    }
}
