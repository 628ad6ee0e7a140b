//! The files of a workload. All paths are below the driver's root.

mod error;
mod list;
mod place;
mod quota;
mod remove;
mod write;

pub(crate) use error::FileError;
pub(crate) use list::{Listing, list};
pub(crate) use place::{Ownership, Place, permissions};
pub use quota::FileBounds;
pub(crate) use quota::{Quota, Room};
pub(crate) use remove::{remove, remove_all};
pub(crate) use write::{Parents, Upload, make_directory, open_to_read};
