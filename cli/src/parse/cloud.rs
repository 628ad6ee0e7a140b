//! Clouds as a command line names them.

use crate::print::identity::CLOUD;

/// What stands for it on a command line: statuses' name, and Juju's for the machine that one works on.
pub(crate) const HERE: [&str; 2] = [CLOUD, "localhost"];
