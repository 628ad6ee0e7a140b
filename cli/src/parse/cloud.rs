//! Clouds on a command line.

use crate::print::identity::CLOUD;

/// The names of the built-in cloud: that of statuses, and Juju's for the own machine.
pub(crate) const HERE: [&str; 2] = [CLOUD, "localhost"];
