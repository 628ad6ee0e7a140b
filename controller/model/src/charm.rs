//! Charms: their upload, their use by models, and their removal.

pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod upload;
pub(crate) mod view;
