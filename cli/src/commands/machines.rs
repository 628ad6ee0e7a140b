//! Machines, as Juju's clients see them.

pub(crate) mod list;
pub(crate) mod retry_provisioning;
pub(crate) mod show;
