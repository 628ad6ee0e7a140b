//! Progress of changes at a controller, until they are done.

pub(crate) mod destroyed;
pub(crate) mod removal;
pub(crate) mod status;
