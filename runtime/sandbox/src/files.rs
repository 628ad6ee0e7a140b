//! The files that a hook sees: the charm's own at `/charm`, read-only; a private `/tmp`, in memory, bounded, and gone
//! with the hook; the storage of its unit, where the charm wants it; and resources, if the charm has any, at
//! `/resources`.
//!
//! All but storage are no directories of the host that a guest could find a way out of: names are looked up in a tree of
//! our own, and the only files of the host that are ever opened are those that the tree was built from. Storage is a
//! directory of the host ([`Filesystem`]), which the kernel keeps guests in.

mod charm;
mod disk;
mod handle;
mod host;
mod listing;
mod nested;
mod path;
mod resources;
mod stored;
mod stream;
mod tree;
mod unit;
mod whole;

pub(crate) use charm::CharmFiles;
pub use disk::{Bounds, Filesystem, FilesystemError, StorageMount, Used, spare_bytes};
pub(crate) use handle::{Files, Shows};
pub(crate) use host::{FilesView, link};
pub use unit::{UnitFile, UnitFiles};
