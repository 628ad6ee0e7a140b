//! The files that a hook sees: the charm's own at `/charm`, read-only, and a private `/tmp`, in memory, bounded,
//! and gone with the hook.
//!
//! Neither is a directory of the host that a guest could find a way out of: names are looked up in a tree of
//! our own, and the only files of the host that are ever opened are those that the tree was built from.

mod charm;
mod handle;
mod host;
mod path;
mod stream;
mod tree;

pub(crate) use charm::CharmFiles;
pub(crate) use handle::Files;
pub(crate) use host::{FilesView, link};
