//! The view of stored state: that of the runner's units.

use std::sync::Arc;

use periapt_host_api::{UnitName, view::StateView};

use crate::{
    entity::StateEntry,
    root::ModelState,
    view::{HasView, RunnerEntities},
};

impl HasView for StateEntry {
    type View = StateView;

    fn of_unit<'a>(state: &'a ModelState, unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>> {
        state.state_of(unit)
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<StateView> {
        own.has_unit(&self.key.unit).then(|| StateView { key: self.key.clone(), value: self.value.clone() })
    }
}
