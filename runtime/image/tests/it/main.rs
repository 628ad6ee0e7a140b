//! Images from outside: made here byte by byte, by `skopeo` and `umoci` where they can be had, and by a registry.

#![expect(clippy::unwrap_used, reason = "a test that panics has failed, as it should")]
#![expect(clippy::indexing_slicing, reason = "a test that finds nothing where something belongs has failed")]

mod fuzz;
mod hostile;
mod made;
mod pack;
mod read;
mod registry;
mod tools;
mod unpack;
