//! What a charm declares of itself, what its code may import, and what differs between two revisions of it.

pub mod charm;
pub mod imports;
pub mod refresh;
pub mod schema;
