//! Storage: its creation, attachment, detachment and removal (`docs/hook-model.md` 5.8).

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod status;
pub(crate) mod takeover;
pub(crate) mod view;
