//! The migration of models to other controllers (`docs/decisions/0085-a-model-migrates-in-two-steps.md`): the freeze, the
//! way out, the way in, and the end of what stays behind.

pub(crate) mod clean_up;
pub(crate) mod entity;
pub(crate) mod freeze;
pub(crate) mod import;
pub(crate) mod outgoing;
pub(crate) mod plan;
pub(crate) mod status;
