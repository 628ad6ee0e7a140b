//! Applications: their deployment, configuration, refresh and removal.

pub(crate) mod command;
pub(crate) mod config;
pub(crate) mod constraints;
pub(crate) mod deploy;
pub(crate) mod end;
pub(crate) mod entity;
pub(crate) mod life;
pub(crate) mod plan;
pub(crate) mod quota;
pub(crate) mod refresh;
pub(crate) mod status;
pub(crate) mod view;
