//! The destinations outside of a model that operators grant to workloads, and the policy for connections to them: a pure
//! function of the grants, the host that a workload asks for, the address of this host, and the port.

use std::collections::BTreeSet;

use core::net::IpAddr;

use crate::network::Subnet;

mod grants;
mod ranges;

pub use grants::{EgressGrant, EgressGrantError, EgressGrants, MAX_EGRESS_GRANTS, WORKLOAD_EGRESS};

/// The extent to which the operator of a host lets grants count on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum EgressReach {
    /// No grant counts.
    Nothing,
    /// Grants count for public addresses.
    #[default]
    Public,
    /// Grants count for private addresses as well, if they name these.
    Granted,
}

/// The destinations that no grant opens on one host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EgressBars {
    /// The extent to which grants count.
    pub reach: EgressReach,
    /// The subnets that the operator of the host denies.
    pub denied: Vec<Subnet>,
    /// The addresses of the host itself.
    pub own: BTreeSet<IpAddr>,
    /// The addresses of controllers.
    pub controllers: BTreeSet<IpAddr>,
    /// The addresses of other agents, with the ports on which they take connections of agents.
    pub agents: BTreeSet<(IpAddr, u16)>,
}

/// A connection of a workload to a host outside of its model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EgressAttempt<'a> {
    /// The name that the workload asks for; none: it asks for the address.
    pub name: Option<&'a str>,
    /// The address to connect to.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
}

/// The reason for refusing a connection to a host outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EgressRefusal {
    /// The host's operator lets no grant count.
    #[error("the agent runs with --egress none")]
    NothingCounts,
    /// No grant has the destination.
    #[error("workload-egress does not grant it")]
    NotGranted,
    /// A range that is never reached, such as that of metadata services.
    #[error("{0} are never reached")]
    Never(&'static str),
    /// A private address that no granted subnet names.
    #[error("it is a private address, which is reached only if workload-egress grants its subnet")]
    Private,
    /// A private address, on a host that lets grants count for public ones alone.
    #[error("it is a private address, and the agent does not run with --egress granted")]
    PrivateHere,
    /// The host's operator denies the address.
    #[error("the agent runs with an --egress-deny that has the address")]
    Denied,
    /// An address of the agent's own host.
    #[error("it is an address of the agent's own host")]
    OwnHost,
    /// An address of a controller.
    #[error("it is the address of a controller")]
    Controller,
    /// The port on which another agent takes connections of agents.
    #[error("another agent listens there")]
    Agent,
}

impl EgressGrants {
    /// Returns the reason for refusing a connection.
    ///
    /// An IPv6 address that stands for an IPv4 address, such as that of a translator, is judged as both. A private address
    /// is admitted only by a subnet or an address that is granted and private itself: a name that leads to one, and a grant
    /// of all addresses, do not admit it.
    ///
    /// # Errors
    /// [`EgressRefusal`]
    pub fn admit(&self, bars: &EgressBars, attempt: EgressAttempt<'_>) -> Result<(), EgressRefusal> {
        let EgressAttempt { name, port, .. } = attempt;
        if bars.reach == EgressReach::Nothing {
            return Err(EgressRefusal::NothingCounts);
        }
        let address = attempt.address.to_canonical();
        let hidden = ranges::embedded(address);
        for form in [address].into_iter().chain(hidden.into_iter().flatten()) {
            bars.check(form, port)?;
        }
        if hidden.into_iter().flatten().any(ranges::is_private) {
            return Err(EgressRefusal::Never("IPv6 forms of private addresses"));
        }
        match ranges::is_private(address) {
            true if !self.name_private(address, port) => Err(EgressRefusal::Private),
            true if bars.reach != EgressReach::Granted => Err(EgressRefusal::PrivateHere),
            false if !self.have(name, address, port) => Err(EgressRefusal::NotGranted),
            _ => Ok(()),
        }
    }
}

impl EgressBars {
    /// Returns the reason why no grant opens one form of an address.
    fn check(&self, form: IpAddr, port: u16) -> Result<(), EgressRefusal> {
        if let Some(what) = ranges::never(form) {
            return Err(EgressRefusal::Never(what));
        }
        if self.denied.iter().any(|subnet| subnet.contains(form)) {
            return Err(EgressRefusal::Denied);
        }
        if self.own.contains(&form) {
            return Err(EgressRefusal::OwnHost);
        }
        if self.controllers.contains(&form) {
            return Err(EgressRefusal::Controller);
        }
        match self.agents.contains(&(form, port)) {
            true => Err(EgressRefusal::Agent),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
