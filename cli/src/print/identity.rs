//! The names of single things that Juju's clients require: the cloud, its region, the user.

/// The name of the one cloud in statuses.
pub(crate) const CLOUD: &str = "periapt";

/// The name of its one region.
pub(crate) const REGION: &str = "default";

/// The text for the last connection of a user who has never logged in.
pub(crate) const NEVER_CONNECTED: &str = "never connected";

/// The text for times of users that a verb does not ask for.
pub(crate) const NOT_RECORDED: &str = "not recorded";
