//! Charms on their author's machine.

pub(crate) mod help;
pub(crate) mod init;
pub(crate) mod pack;
pub(crate) mod try_hook;
