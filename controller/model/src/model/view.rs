//! The view of a model itself.

use periapt_host_api::view::ModelView;

use crate::root::ModelState;

impl ModelState {
    /// Returns the view of the model itself.
    pub(crate) fn model_view(&self) -> ModelView {
        let model = self.model();
        let mut config = self.config().clone();
        let (budgets, workload_limits) = std::mem::take(&mut config.budgets).split();
        config.budgets = budgets;
        ModelView {
            uuid: model.uuid,
            name: model.name.clone(),
            life: model.life,
            config,
            workload_limits,
            spaces: model.spaces.clone(),
        }
    }
}
