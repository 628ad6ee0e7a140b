//! Spaces, open ports, and the firewall rules that follow from them.

pub(crate) mod command;
pub(crate) mod commit;
pub(crate) mod firewall;
pub(crate) mod spaces;
