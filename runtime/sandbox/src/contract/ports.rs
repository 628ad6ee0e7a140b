//! The interface `ports`.

use periapt_host_api::ports::{PortRange, Transport};
use wasmtime::component::LinkerInstance;

use super::{
    bindings::periapt::charm::ports::{OpenedPorts, PortRange as WitRange, Ports},
    host_call,
    types::Error,
};
use crate::state::HookState;

pub(super) fn link(interface: &mut LinkerInstance<'_, HookState>) -> wasmtime::Result<()> {
    host_call::link(interface, "open", |context, _, (ports, endpoints): (Ports, Vec<String>)| {
        context.open_ports(ports.into(), &endpoints).map_err(Error::from)
    })?;
    host_call::link(interface, "close", |context, _, (ports, endpoints): (Ports, Vec<String>)| {
        context.close_ports(ports.into(), &endpoints).map_err(Error::from)
    })?;
    host_call::link(interface, "opened", |context, _, (): ()| {
        let opened = context.opened_ports().into_iter();
        opened
            .map(|opened| OpenedPorts {
                ports: opened.range.into(),
                endpoints: opened.endpoints.iter().map(ToString::to_string).collect(),
            })
            .collect::<Vec<_>>()
    })
}

impl From<Ports> for periapt_hook::Ports {
    fn from(ports: Ports) -> Self {
        match ports {
            Ports::Tcp(range) => Self::Tcp(range.first, range.last),
            Ports::Udp(range) => Self::Udp(range.first, range.last),
            Ports::Icmp => Self::Icmp,
        }
    }
}

impl From<PortRange> for Ports {
    fn from(range: PortRange) -> Self {
        match range.ports() {
            Some((Transport::Tcp, first, last)) => Self::Tcp(WitRange { first, last }),
            Some((Transport::Udp, first, last)) => Self::Udp(WitRange { first, last }),
            None => Self::Icmp,
        }
    }
}
