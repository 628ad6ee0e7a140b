//! The leadership of applications: claimed, renewed, lapsed (`docs/hook-model.md` 7.4).

pub(crate) mod claim;
pub(crate) mod expire;
