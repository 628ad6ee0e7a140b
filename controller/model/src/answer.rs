//! The answers to commands that carry the id of a request: kept for a while, so that a request that is sent again is
//! carried out once.

pub(crate) mod due;
pub(crate) mod entity;
pub(crate) mod keep;
mod output;
