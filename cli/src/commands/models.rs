//! Models: made, chosen, set, shown and destroyed.

pub(crate) mod add;
pub(crate) mod config;
pub(crate) mod defaults;
pub(crate) mod listed;
pub(crate) mod show;
pub(crate) mod switch;
pub(crate) mod users;
pub(crate) mod whoami;
