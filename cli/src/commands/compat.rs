//! What is kept for Juju's clients, and has no effect.

pub(crate) mod clouds;
pub(crate) mod credentials;
pub(crate) mod ssh_keys;
