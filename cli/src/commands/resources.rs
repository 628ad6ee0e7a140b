//! `attach-resource`, `resources`.

mod attach;
mod file;
mod list;

pub(crate) use attach::AttachResource;
pub(crate) use file::{ResourceFile, argument, given};
pub(crate) use list::Resources;
