//! Entities with a view of their own, independent of the rest of the view.

use std::sync::Arc;

use periapt_host_api::UnitName;

use super::RunnerEntities;
use crate::{entity::Kind, root::ModelState};

/// A kind of entity with a view of its own. The declaration of the kind ([`kinds`](crate::entity::kinds)) generates
/// the code that adds it to views and updates it.
pub(crate) trait HasView: Kind + 'static {
    /// The view of the entity.
    type View;

    /// Returns the entities that belong to a unit.
    fn of_unit<'a>(_state: &'a ModelState, _unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>> {
        std::iter::empty()
    }

    /// Returns the entities that a runner may see besides those of its units.
    fn beside<'a>(_own: &RunnerEntities<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        std::iter::empty()
    }

    /// Returns the view of the entity, or none if the runner does not see it.
    fn seen(&self, own: &RunnerEntities<'_>) -> Option<Self::View>;
}
