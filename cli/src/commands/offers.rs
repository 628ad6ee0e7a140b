//! Offers across models, and what consumes them.

pub(crate) mod consume;
pub(crate) mod find;
pub(crate) mod list;
pub(crate) mod make;
