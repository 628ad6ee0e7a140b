//! Output that several verbs share.

pub(crate) mod constraints;
pub(crate) mod identity;
pub(crate) mod removal;
pub(crate) mod status;
pub(crate) mod storage;
