//! The audit log: an entry for each request of a user, taken or refused, in the same commit as its changes.

pub(crate) mod entity;
pub(crate) mod entry;
pub(crate) mod operation;
