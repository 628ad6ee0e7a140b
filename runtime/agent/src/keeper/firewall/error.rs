//! The reasons why the host's firewall has no rules of the agent, or earlier ones.

use std::io;

use super::rules::TooManyRules;

/// A reason why rules of the host's firewall cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum FirewallError {
    /// The agent has no right over the host's network.
    #[error(
        "the agent may not write rules of the host's firewall: it needs the capability CAP_NET_ADMIN, as root has it \
         (with systemd: AmbientCapabilities=CAP_NET_ADMIN)"
    )]
    NoRight,
    /// The kernel does not take the rules.
    #[error(
        "this host's kernel does not take rules for its firewall ({0}): it needs nf_tables, with sets of intervals and \
         tracked connections"
    )]
    Kernel(io::Error),
    /// The units of the host have too many ports open.
    #[error(transparent)]
    TooMany(#[from] TooManyRules),
}

impl From<io::Error> for FirewallError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoRight,
            _ => Self::Kernel(error),
        }
    }
}
