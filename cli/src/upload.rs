//! Uploads of files to a controller.

pub(crate) mod charm;
pub(crate) mod resource;
