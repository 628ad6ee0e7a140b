//! Storage of units.

pub(crate) mod list;
