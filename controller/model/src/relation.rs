//! Relations: their creation, scopes, settings and removal (`docs/hook-model.md` section 2).

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod endpoints;
pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod scope;
pub(crate) mod status;
pub(crate) mod view;
