//! Files on their way from this machine to a controller.

pub(crate) mod charm;
pub(crate) mod resource;
