//! The view of storage: the storage of the runner's units, and all storage on the agent's disk.

use std::sync::Arc;

use periapt_host_api::{UnitName, view::StorageView};

use crate::{
    entity::Storage,
    root::ModelState,
    view::{HasView, RunnerEntities},
};

impl HasView for Storage {
    type View = StorageView;

    fn of_unit<'a>(state: &'a ModelState, unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>> {
        state.storages_of(unit)
    }

    fn beside<'a>(own: &RunnerEntities<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        own.state.storages_at(own.agent)
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<StorageView> {
        let of_own_unit = self.unit().is_some_and(|unit| own.has_unit(unit));
        (of_own_unit || self.agent.as_ref() == Some(own.agent)).then(|| StorageView {
            id: self.id.clone(),
            life: self.life(),
            size: self.size,
            provisioned: self.agent.is_some(),
            attachment: self.attachment.clone(),
        })
    }
}
