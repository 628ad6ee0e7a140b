//! The views of charms.

use periapt_host_api::view::CharmView;

use crate::{entity::ModelCharm, root::Root};

impl ModelCharm {
    /// Returns the view of the charm; none if the controller does not hold the charm.
    pub(crate) fn view(&self, root: &Root) -> Option<CharmView> {
        let charm = root.charm(&self.digest)?;
        Some(CharmView {
            digest: self.digest,
            component: charm.component,
            revision: self.revision,
            meta: charm.meta.clone(),
        })
    }
}
