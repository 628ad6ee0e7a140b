//! The state that charms store for their units (`docs/hook-model.md` 5.11).

pub(crate) mod commit;
pub(crate) mod entity;
pub(crate) mod view;
