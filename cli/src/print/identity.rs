//! What there is one of, named as Juju's clients want it named: the cloud, its region, the user.

/// The one cloud that units run in, as statuses call it.
pub(crate) const CLOUD: &str = "periapt";

/// Its one region.
pub(crate) const REGION: &str = "default";

/// The user of a controller that knows no others.
pub(crate) const USER: &str = "admin";

/// When somebody was made known or was there last.
pub(crate) const NOT_RECORDED: &str = "not recorded";
