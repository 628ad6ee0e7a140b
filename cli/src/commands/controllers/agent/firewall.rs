//! The options of an agent about the host's firewall.

use clap::{Args, ValueEnum};
use periapt_agent::{FirewallOptions, try_firewall};
use periapt_host_api::ports::PortRange;

use crate::error::{Failure, Result, with_source};

/// The options.
#[derive(Debug, Args)]
pub(crate) struct FirewallArgs {
    /// The rules of this host's firewall that the agent writes for the ports that its units have open
    #[arg(long, value_name = "RULES", value_enum, default_value_t)]
    firewall: FirewallKind,
    /// A range of ports that no rule is about, even if a unit opens it, such as 2222 or 5000-5100/udp: that of a service
    /// of this host. The one of SSH, 22/tcp, always is. May be repeated
    #[arg(long = "firewall-except", value_name = "PORTS")]
    except: Vec<PortRange>,
}

/// The kinds of rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum FirewallKind {
    /// The agent touches no firewall.
    #[default]
    None,
    /// Packets to these ports are dropped unless the model's rules admit the sender.
    Nftables,
}

impl FirewallArgs {
    /// Returns the options of the agent, once it is certain that the agent can write rules.
    pub(crate) fn options(&self) -> Result<Option<FirewallOptions>> {
        match self.firewall {
            FirewallKind::None if self.except.is_empty() => Ok(None),
            FirewallKind::None => Err(Failure::misused("--firewall-except needs --firewall nftables")),
            FirewallKind::Nftables => {
                try_firewall().map_err(with_source)?;
                Ok(Some(FirewallOptions { untouched: self.except.iter().copied().collect() }))
            }
        }
    }
}
