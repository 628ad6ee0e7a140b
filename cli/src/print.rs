//! What several verbs print.

pub(crate) mod constraints;
pub(crate) mod identity;
pub(crate) mod removal;
pub(crate) mod status;
pub(crate) mod storage;
