//! Networks: the interfaces of hosts, subnets, spaces, and the network info of a unit's binding (`docs/hook-model.md`
//! 5.7).

mod subnet;

pub use subnet::{Subnet, SubnetError};

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{SpaceName, settings::ModelConfig};

/// The space of all addresses that are in no other space.
pub const ALPHA: &str = "alpha";

/// The implicit endpoint of every application.
pub const JUJU_INFO: &str = "juju-info";

/// Spaces: named sets of subnets. No subnet is in two of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Spaces(
    /// The subnets of each space.
    pub BTreeMap<SpaceName, BTreeSet<Subnet>>,
);

impl Spaces {
    /// Returns true if there is no space but `alpha`.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the space of an address: that of the smallest subnet around it, or else `alpha`.
    pub fn of(&self, address: IpAddr) -> &str {
        let around =
            self.0.iter().flat_map(|(name, subnets)| subnets.iter().map(move |subnet| (subnet, name)));
        let smallest =
            around.filter(|(subnet, _)| subnet.contains(address)).max_by_key(|(subnet, _)| subnet.bits);
        smallest.map_or(ALPHA, |(_, name)| name.as_str())
    }

    /// Returns true if there is a space of this name; `alpha` always exists.
    pub fn has(&self, name: &SpaceName) -> bool {
        name.as_str() == ALPHA || self.0.contains_key(name)
    }
}

/// The spaces that an application's endpoints are bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default)]
pub struct Bindings {
    /// The space of endpoints that are not named. `None` means `alpha`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<SpaceName>,
    /// The spaces of endpoints and extra bindings.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoints: BTreeMap<String, SpaceName>,
}

impl Bindings {
    /// Returns true if no space is named.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the space of an endpoint or extra binding.
    pub fn space_of(&self, binding: &str) -> &str {
        self.endpoints.get(binding).or(self.default.as_ref()).map_or(ALPHA, SpaceName::as_str)
    }

    /// Returns all named spaces.
    pub fn spaces(&self) -> impl Iterator<Item = &SpaceName> {
        self.default.iter().chain(self.endpoints.values())
    }
}

/// A network interface of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct HostInterface {
    /// The name, such as `eth0`.
    pub name: String,
    /// The MAC address, six bytes as hex; may be empty.
    pub mac: String,
    /// The addresses of the interface.
    pub addresses: Vec<InterfaceAddress>,
}

/// An address of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct InterfaceAddress {
    /// The address.
    pub address: IpAddr,
    /// The subnet of the address.
    pub subnet: Subnet,
}

/// The networks of a host, as its agent reports them.
#[derive(Debug, Clone, Copy)]
pub struct HostNetwork<'a> {
    /// Ingress addresses of the host, the preferred first.
    pub addresses: &'a [String],
    /// The host's interfaces; empty means unknown.
    pub interfaces: &'a [HostInterface],
}

/// The network info of a binding, as network-get returns it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct NetworkInfo {
    /// Interfaces with addresses in the binding's space, the one with the preferred address first.
    pub bind_addresses: Vec<HostInterface>,
    /// The source subnets of the unit's traffic.
    pub egress_subnets: Vec<Subnet>,
    /// The addresses at which others reach the unit, the preferred first.
    pub ingress_addresses: Vec<String>,
}

impl NetworkInfo {
    /// Returns the address that the unit binds to.
    pub fn bind_address(&self) -> Option<IpAddr> {
        self.bind_addresses.first()?.addresses.first().map(|address| address.address)
    }

    /// Returns the preferred address at which others reach the unit.
    pub fn ingress_address(&self) -> Option<&str> {
        self.ingress_addresses.first().map(String::as_str)
    }
}

/// Returns the source subnets of a relation's traffic: those of the relation (`integrate --via`), or else the
/// model's.
pub fn egress_of<'a>(relation: &'a [Subnet], model: &'a ModelConfig) -> &'a [Subnet] {
    match relation {
        [] => &model.egress_subnets,
        said => said,
    }
}

/// Computes the network info of a unit on a host for a space. Without a known ingress address, the first bind address
/// takes its place (O08). Without egress subnets of the model, the unit's ingress address is its only one.
pub fn network_info(host: HostNetwork<'_>, spaces: &Spaces, egress: &[Subnet], space: &str) -> NetworkInfo {
    let inside = |text: &&String| match text.parse() {
        Ok(address) => spaces.of(address) == space,
        Err(_) => space == ALPHA,
    };
    let mut ingress_addresses: Vec<String> = host.addresses.iter().filter(inside).cloned().collect();
    let preferred = ingress_addresses.first().and_then(|text| text.parse::<IpAddr>().ok());
    let known = match host.interfaces {
        [] => unnamed(host.addresses),
        interfaces => interfaces.to_vec(),
    };
    let mut bind_addresses: Vec<HostInterface> = known
        .into_iter()
        .map(|mut interface| {
            interface.addresses.retain(|address| spaces.of(address.address) == space);
            interface.addresses.sort_by_key(|address| Some(address.address) != preferred);
            interface
        })
        .filter(|interface| !interface.addresses.is_empty())
        .collect();
    let first = |interface: &HostInterface| interface.addresses.first().map(|address| address.address);
    bind_addresses.sort_by_key(|interface| preferred.is_none() || first(interface) != preferred);
    if ingress_addresses.is_empty() {
        ingress_addresses.extend(bind_addresses.first().and_then(first).map(|address| address.to_string()));
    }
    let source = || ingress_addresses.first().and_then(|address| address.parse().ok());
    let egress_subnets = match egress {
        [] => source().map(Subnet::only).into_iter().collect(),
        said => said.to_vec(),
    };
    NetworkInfo { bind_addresses, egress_subnets, ingress_addresses }
}

/// Returns an interface without a name, for a host that reports only addresses.
fn unnamed(addresses: &[String]) -> Vec<HostInterface> {
    let alone = |address: IpAddr| InterfaceAddress { address, subnet: Subnet::only(address) };
    let addresses = addresses.iter().filter_map(|text| text.parse().ok()).map(alone).collect();
    vec![HostInterface { name: String::new(), mac: String::new(), addresses }]
}

#[cfg(test)]
mod tests;
