//! The details of single entities for display.

mod application;
mod status;
mod unit;

use periapt_host_api::Digest;
use periapt_model::{ModelState, Root};

pub(crate) use application::application;
pub(crate) use status::StatusSource;
pub(crate) use unit::unit;

/// A charm's name and revision in the model. Lists show it as `local:NAME-REV`.
struct CharmLabel {
    name: String,
    revision: u64,
}

impl CharmLabel {
    fn of(root: &Root, state: &ModelState, digest: &Digest) -> Self {
        let name = root.charm(digest).map(|charm| charm.meta.name.clone()).unwrap_or_default();
        let revision = state.charm(digest).map(|charm| charm.revision).unwrap_or_default();
        Self { name, revision }
    }

    fn url(&self) -> String {
        format!("local:{}-{}", self.name, self.revision)
    }
}
