//! The files that a hook sees: the charm's own at `/charm`, read-only; a private, bounded `/tmp` in memory, which ends
//! with the hook; the unit's storage, at the charm's locations; and resources, if the charm has any, at `/resources`.
//!
//! Except for storage, guests have no access to host directories. Names are looked up in trees of the sandbox's own,
//! and the only host files that it opens are those from which a tree was built. Storage is a host directory
//! ([`Filesystem`]), and the kernel confines look-ups to it.

mod charm;
mod disk;
mod handle;
mod host;
mod listing;
mod nested;
mod path;
mod resources;
mod stat;
mod stored;
mod stream;
mod tree;
mod unit;
mod view;
mod whole;

pub(crate) use charm::CharmFiles;
pub use disk::{Bounds, Filesystem, FilesystemError, StorageMount, Used, measure_storage, spare_bytes};
pub(crate) use handle::Files;
pub use handle::ResourcesMount;
pub(crate) use host::link;
pub use unit::{UnitFile, UnitFiles};
pub(crate) use view::FilesView;
