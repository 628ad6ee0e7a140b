//! Following a controller while it changes something, until that is done.

pub(crate) mod destroyed;
pub(crate) mod removal;
pub(crate) mod status;
