//! Uploads of files to a controller.

pub(crate) mod charm;
mod image;
pub(crate) mod resource;
