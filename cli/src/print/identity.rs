//! The names of single things that Juju's clients require: the cloud, its region, the user.

/// The name of the one cloud in statuses.
pub(crate) const CLOUD: &str = "periapt";

/// The name of its one region.
pub(crate) const REGION: &str = "default";

/// The name of the one user.
pub(crate) const USER: &str = "admin";

/// The text for times of users, which are not recorded.
pub(crate) const NOT_RECORDED: &str = "not recorded";
