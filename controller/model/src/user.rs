//! Users, their sessions and tokens, and the grants that give them access.

pub(crate) mod account;
pub(crate) mod entity;
pub(crate) mod external;
pub(crate) mod find;
pub(crate) mod grant;
pub(crate) mod read;
pub(crate) mod session;
pub(crate) mod uploaders;
