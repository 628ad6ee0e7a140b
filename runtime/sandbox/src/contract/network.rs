//! The interface `network`.

use periapt_host_api::{RelationId, network::HostInterface};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::network::{InterfaceAddress, NetworkInfo, NetworkInterface},
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "get", |context, _, (binding, relation): (String, Option<u32>)| {
        let info = context.network_get(&binding, relation.map(RelationId));
        info.map(NetworkInfo::from).map_err(Error::from)
    })
}

impl From<periapt_host_api::network::NetworkInfo> for NetworkInfo {
    fn from(info: periapt_host_api::network::NetworkInfo) -> Self {
        Self {
            bind_addresses: info.bind_addresses.into_iter().map(NetworkInterface::from).collect(),
            ingress_addresses: info.ingress_addresses,
            egress_subnets: info.egress_subnets.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<HostInterface> for NetworkInterface {
    fn from(interface: HostInterface) -> Self {
        let addresses = interface
            .addresses
            .iter()
            .map(|at| InterfaceAddress { address: at.address.to_string(), cidr: at.subnet.to_string() });
        Self { addresses: addresses.collect(), name: interface.name, mac: interface.mac }
    }
}
