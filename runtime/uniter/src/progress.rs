//! A unit's record after an operation (`docs/hook-model.md` 1.5, 1.6). The executor makes the record after a run
//! (`executor/run.rs`).

mod deploy;
mod failed;
mod follow;

pub(crate) use deploy::put_failed_deploy_aside;
pub use deploy::{deploy_failed, deployed};
pub(crate) use failed::{cut_short, fail};
pub(crate) use follow::{commit, drop_moot, queued, restated, skipped};
