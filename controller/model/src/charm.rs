//! Charms: uploaded, used by models, forgotten.

pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod upload;
