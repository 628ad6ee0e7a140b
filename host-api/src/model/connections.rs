//! The policy for connections to the workloads of units: a pure function of who asks, the unit's ingress rules and the
//! relations of its application (`docs/hook-model.md` 7.3).

use core::net::IpAddr;

use crate::{UnitName, firewall::IngressRules, ports::Transport};

mod related;
mod target;

pub use related::RelatedApplications;
pub use target::ConnectionTarget;

/// The origin of a connection to a unit's workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionOrigin {
    /// A host, by the address from which the connection comes. Units of other models count as their hosts.
    Host(IpAddr),
    /// A unit of the same application, or the unit itself.
    SameApplication,
    /// A unit of an application that is related to the unit's.
    RelatedApplication,
    /// Another unit of the same model, with the address of its host.
    OtherUnit(IpAddr),
}

/// The reason for refusing a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ConnectionRefusal {
    /// The unit has not opened the port, or its application is not exposed.
    #[error("port {0} is not open to other hosts: it is not opened, or the application is not exposed")]
    Closed(u16),
    /// The port is open, but not to this address.
    #[error("port {port} is not open to {address}")]
    AddressNotAdmitted {
        /// The port.
        port: u16,
        /// The address from which the connection comes.
        address: IpAddr,
    },
    /// The applications of the two units are not related, and the port is not open to the asking unit's host.
    #[error("the applications are not related, and port {0} is not open to the unit's host")]
    NotRelated(u16),
}

impl ConnectionOrigin {
    /// Classifies a unit that asks for a connection to another unit of its model. `host` is the address of the asking
    /// unit's host.
    pub fn of_unit(
        asking: &UnitName,
        host: IpAddr,
        target: &UnitName,
        related: &RelatedApplications,
    ) -> Self {
        let (own, other) = (asking.application(), target.application());
        if own == other {
            Self::SameApplication
        } else if related.are_related(own, other) {
            Self::RelatedApplication
        } else {
            Self::OtherUnit(host)
        }
    }

    /// Returns the reason for refusing a connection to a port of a unit with these ingress rules.
    ///
    /// Units of the same and of related applications reach each port, as in Juju. All others reach the ports that the
    /// rules open to their host. An IPv4 address in the form of IPv6 counts as IPv4.
    pub fn admit(
        self,
        rules: &IngressRules,
        transport: Transport,
        port: u16,
    ) -> Result<(), ConnectionRefusal> {
        match self {
            Self::SameApplication | Self::RelatedApplication => Ok(()),
            Self::Host(address) => admit_host(address, rules, transport, port),
            Self::OtherUnit(address) => {
                admit_host(address, rules, transport, port).map_err(|_| ConnectionRefusal::NotRelated(port))
            }
        }
    }
}

fn admit_host(
    address: IpAddr,
    rules: &IngressRules,
    transport: Transport,
    port: u16,
) -> Result<(), ConnectionRefusal> {
    let address = address.to_canonical();
    let mut refusal = ConnectionRefusal::Closed(port);
    for (range, subnets) in rules {
        if !range.ports().is_some_and(|(of, first, last)| of == transport && (first..=last).contains(&port)) {
            continue;
        }
        if subnets.iter().any(|subnet| subnet.contains(address)) {
            return Ok(());
        }
        refusal = ConnectionRefusal::AddressNotAdmitted { port, address };
    }
    Err(refusal)
}

#[cfg(test)]
mod tests;
