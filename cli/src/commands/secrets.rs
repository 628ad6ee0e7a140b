//! Secrets of users.

pub(crate) mod add;
pub(crate) mod content;
pub(crate) mod list;
pub(crate) mod show;
