//! Opening and closing ports (`docs/hook-model.md` 5.5). Units of one machine share its ports, so each request is
//! checked against the open ports of all of them.

use std::collections::BTreeSet;

use periapt_host_api::{
    EndpointName, UnitName,
    name::MAX_NAME_LENGTH,
    ports::{OpenedPorts, PortRange, PortRangeError, Transport},
};
use serde::Serialize;

use crate::{
    CallError,
    context::{HookContext, HookRun},
};

/// The most bytes of a port request in a commit: the range, the endpoint's name, and the words around them.
const REQUEST_BYTES: usize = MAX_NAME_LENGTH + 64;

/// Ports as the typed interface names them; first and last are not checked yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ports {
    /// First and last port, both included.
    Tcp(u16, u16),
    /// First and last port, both included.
    Udp(u16, u16),
    /// ICMP has no ports.
    Icmp,
}

impl Ports {
    pub(crate) fn range(self) -> Result<PortRange, CallError> {
        Ok(match self {
            Self::Tcp(first, last) => PortRange::new(Transport::Tcp, first, last)?,
            Self::Udp(first, last) => PortRange::new(Transport::Udp, first, last)?,
            Self::Icmp => PortRange::ICMP,
        })
    }
}

impl From<PortRangeError> for CallError {
    fn from(error: PortRangeError) -> Self {
        Self::InvalidArgument(error.to_string())
    }
}

/// The typed interface: `ports`.
impl HookContext {
    /// Opens ports for some endpoints, or for all if none is named.
    pub fn open_ports(&mut self, ports: Ports, endpoints: &[String]) -> Result<(), CallError> {
        self.call("ports.open", (ports, endpoints), |run| run.open_ports(ports.range()?, endpoints))
    }

    /// Closes ports for some endpoints, or for all if none is named.
    pub fn close_ports(&mut self, ports: Ports, endpoints: &[String]) -> Result<(), CallError> {
        self.call("ports.close", (ports, endpoints), |run| run.close_ports(ports.range()?, endpoints))
    }

    /// Returns the unit's open ports, with this hook's requests.
    pub fn opened_ports(&mut self) -> Vec<OpenedPorts> {
        self.call("ports.opened", (), |run| run.opened_ports())
    }
}

impl HookRun {
    /// Opens a range for some endpoints, or for all if none is named.
    pub(crate) fn open_ports(&mut self, range: PortRange, endpoints: &[String]) -> Result<(), CallError> {
        let endpoints = self.port_endpoints(endpoints)?;
        self.check_neighbours("open", range)?;
        let open = self.effects.ports();
        if endpoints.iter().all(|endpoint| open.contains_for(&range, endpoint.as_ref())) {
            return Ok(());
        }
        let mut ports = open.clone();
        let bytes = endpoints.len() * REQUEST_BYTES;
        for endpoint in endpoints {
            ports.open(range, endpoint);
        }
        if ports.len() > self.limits.port_ranges {
            return Err(CallError::LimitExceeded(format!(
                "unit {} would have {} port ranges open; at most {} are allowed",
                self.snapshot.unit,
                ports.len(),
                self.limits.port_ranges
            )));
        }
        self.effects.set_ports(ports, bytes, &self.limits)
    }

    /// Closes a range for some endpoints, or for all if none is named. A range that is not open needs no change.
    pub(crate) fn close_ports(&mut self, range: PortRange, endpoints: &[String]) -> Result<(), CallError> {
        let endpoints = self.port_endpoints(endpoints)?;
        if !self.effects.ports().contains(&range) {
            return self.check_neighbours("close", range);
        }
        let own: BTreeSet<_> = self.snapshot.meta().endpoints.keys().collect();
        let mut ports = self.effects.ports().clone();
        for endpoint in &endpoints {
            ports.close(range, endpoint.as_ref(), own.iter().copied());
        }
        if ports == *self.effects.ports() {
            return Ok(());
        }
        // A commit stores the close of one endpoint of all as a close of all and opens of the others.
        let bytes = (endpoints.len() + own.len()) * REQUEST_BYTES;
        self.effects.set_ports(ports, bytes, &self.limits)
    }

    /// Returns the unit's open ports, with this hook's requests.
    pub(crate) fn opened_ports(&self) -> Vec<OpenedPorts> {
        self.effects.ports().to_opened()
    }

    /// Returns the endpoints of a request, each once. No names mean all endpoints, written as `None`.
    fn port_endpoints(&self, names: &[String]) -> Result<BTreeSet<Option<EndpointName>>, CallError> {
        if names.is_empty() {
            return Ok(BTreeSet::from([None]));
        }
        let known = |name: &String| {
            let endpoint = EndpointName::new(name).ok();
            endpoint
                .filter(|endpoint| self.snapshot.meta().endpoints.contains_key(endpoint))
                .map(Some)
                .ok_or_else(|| CallError::NotFound(format!("endpoint {name:?} not found")))
        };
        names.iter().map(known).collect()
    }

    /// Refuses a range that overlaps another range of this unit, or any range of another unit of the machine.
    fn check_neighbours(&self, verb: &str, range: PortRange) -> Result<(), CallError> {
        let own = &self.snapshot.unit;
        let conflict = |with: PortRange, unit: &UnitName, when: &str| {
            Err(CallError::Conflict(format!(
                "cannot {verb} {range} (unit \"{own}\"): port range conflicts with {with} (unit \"{unit}\"){when}"
            )))
        };
        if let Some(open) = self.effects.ports().overlapping(&range) {
            let when = if self.effects.base_ports().contains(&open) { "" } else { " requested earlier" };
            return conflict(open, own, when);
        }
        let others = self.snapshot.machine().ports.iter().filter(|(unit, _)| *unit != own);
        for (unit, opened) in others {
            if let Some(open) = opened.iter().find(|open| open.range.overlaps(&range)) {
                return conflict(open.range, unit, "");
            }
        }
        Ok(())
    }
}
