//! Life cycles: how things come to be dying, and go (`hook-model.md` 7.1).

pub(crate) mod application;
pub(crate) mod application_end;
pub(crate) mod charm;
pub(crate) mod machine;
pub(crate) mod new_unit;
pub(crate) mod relation;
pub(crate) mod remote;
pub(crate) mod remote_end;
pub(crate) mod scope;
pub(crate) mod secret;
pub(crate) mod storage;
pub(crate) mod unit;
