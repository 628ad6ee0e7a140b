//! The leadership of applications: claims, renewals and expiry (`docs/hook-model.md` 7.4).

pub(crate) mod claim;
pub(crate) mod expire;
