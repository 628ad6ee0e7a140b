//! Actions: their requests, tasks, results and retention (`docs/hook-model.md` 1.13, 6.3).

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod due;
pub(crate) mod entity;
pub(crate) mod view;
