//! Charm metadata, the imports that a charm's code may have, and the differences between two revisions of a charm.

pub mod charm;
pub mod imports;
pub mod refresh;
pub mod schema;
pub mod workloads;
