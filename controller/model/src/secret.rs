//! Secrets: their creation, changes, reads, rotation and removal (`docs/hook-model.md` 5.9).

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod due;
pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod read;
pub(crate) mod seal;
pub(crate) mod view;
