//! The views of units, and the outlines that other units see.

use std::sync::Arc;

use periapt_host_api::view::{UnitOutline, UnitView};

use crate::{
    entity::Unit,
    root::ModelState,
    status,
    view::{HasView, RunnerEntities},
};

impl HasView for Unit {
    type View = UnitView;

    fn beside<'a>(own: &RunnerEntities<'a>) -> impl Iterator<Item = &'a Arc<Self>> {
        own.units()
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<UnitView> {
        let machine = self.machine.filter(|_| own.state.agent_of(self) == Some(own.agent))?;
        Some(UnitView {
            name: self.name.clone(),
            life: self.life,
            machine,
            principal: self.principal.clone(),
            subordinates: own.state.subordinates_of(&self.name).map(|unit| unit.name.clone()).collect(),
            resolved: self.resolved,
            record: self.record.clone(),
            early_number: self.early_number,
            workload_status: self.workload_status.clone(),
            agent_status: self.agent_status.clone(),
        })
    }
}

impl Unit {
    /// Returns the part of the unit that the leader and goal state see. The agent's connection is excluded: hooks may
    /// not read it, and it changes without a commit.
    pub(crate) fn outline(&self, state: &ModelState) -> UnitOutline {
        UnitOutline {
            name: self.name.clone(),
            life: self.life,
            workload_status: status::shown::with_hook_error(self),
            agent: state.agent_of(self).cloned(),
        }
    }
}
