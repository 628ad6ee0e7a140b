//! The controller itself, and what clients give it to keep.

pub(crate) mod entity;
pub(crate) mod kept;
pub(crate) mod start;
