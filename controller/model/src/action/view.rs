//! The view of tasks: a runner sees the open tasks of its units.

use std::sync::Arc;

use periapt_host_api::{UnitName, view::TaskView};

use crate::{
    entity::Task,
    root::ModelState,
    view::{HasView, RunnerEntities},
};

impl HasView for Task {
    type View = TaskView;

    fn of_unit<'a>(state: &'a ModelState, unit: &UnitName) -> impl Iterator<Item = &'a Arc<Self>> {
        state.open_tasks(unit)
    }

    fn seen(&self, own: &RunnerEntities<'_>) -> Option<TaskView> {
        (self.status.is_open() && own.has_unit(&self.unit)).then(|| TaskView {
            id: self.id,
            unit: self.unit.clone(),
            action: self.action.clone(),
            parameters: self.parameters.clone(),
            group: self.group.clone(),
            status: self.status,
        })
    }
}
