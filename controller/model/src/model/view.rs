//! The view of a model itself.

use periapt_host_api::view::ModelView;

use crate::root::ModelState;

impl ModelState {
    /// Returns the view of the model itself.
    pub(crate) fn model_view(&self) -> ModelView {
        let model = self.model();
        ModelView {
            uuid: model.uuid,
            name: model.name.clone(),
            life: model.life,
            config: self.config().clone(),
            spaces: model.spaces.clone(),
        }
    }
}
