//! The version of Juju that Periapt is compatible with.

/// The release of Juju whose behaviour charms and clients find here. Both compare it to learn which features exist,
/// so Periapt's own version would mislead them.
pub const JUJU_VERSION: &str = "3.6.26";
