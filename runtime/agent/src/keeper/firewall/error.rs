//! The reasons why the host's firewall has no rules of the agent, or earlier ones.

use std::io;

use periapt_host_api::agent::MAX_FIREWALL_PROBLEM;

use super::rules::{MAX_RULES, TooManyRules};

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

impl FirewallError {
    /// Returns the error and its remedy as one line for `status`. Operators of all models of the host read it, so it names
    /// no unit.
    pub(super) fn for_status(&self) -> String {
        match self {
            Self::NoRight => lacking("the agent has lost CAP_NET_ADMIN; start it again with that capability"),
            Self::Kernel(error) => {
                lacking(&format!("the kernel refuses them ({error}); see the agent's log"))
            }
            Self::TooMany(_) => lacking(&format!(
                "more than {MAX_RULES} are needed; open fewer ports, or expose them to fewer subnets"
            )),
        }
    }
}

/// Returns the line for `status` about an attempt that ended early, by a defect of the agent's.
pub(super) fn unfinished_for_status() -> String {
    lacking("the agent failed to write them; see its log")
}

fn lacking(reason: &str) -> String {
    let mut line = format!("the host's firewall lacks the newest rules: {reason}");
    line.truncate(line.floor_char_boundary(MAX_FIREWALL_PROBLEM));
    line
}

impl From<io::Error> for FirewallError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::PermissionDenied => Self::NoRight,
            _ => Self::Kernel(error),
        }
    }
}
