//! The view of events: the pending events of the runner's units.

use std::sync::Arc;

use periapt_host_api::{UnitName, view::EventsView};

use crate::{
    entity::PendingEvents,
    root::ModelState,
    view::{HasView, RunnerEntities},
};

impl HasView for PendingEvents {
    type View = EventsView;

    fn of_unit<'a>(state: &'a ModelState, unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>> {
        state.events_of(unit).into_iter()
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<EventsView> {
        own.has_unit(&self.unit).then(|| EventsView {
            unit: self.unit.clone(),
            next: self.next,
            events: self.events.clone(),
        })
    }
}
