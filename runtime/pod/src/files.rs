//! The files of a workload. All paths are below the driver's root.

mod error;
mod list;
mod place;
mod remove;
mod write;

pub(crate) use error::FileError;
pub(crate) use list::list;
pub(crate) use place::{Ownership, Place, permissions};
pub(crate) use remove::remove;
pub(crate) use write::{Upload, make_directory, open_to_read};
