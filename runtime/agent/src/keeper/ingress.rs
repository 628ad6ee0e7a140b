//! Connections from outside to the workloads of one model's units on this host. For each TCP port that a unit has open
//! and that its application's exposure lets in, the keeper listens on the host's addresses, and forwards what it accepts
//! to a stream of the unit's pods. Nothing of the host's firewall is changed, and no privilege is needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
    sync::Arc,
};

use periapt_host_api::{
    ModelUuid, UnitName,
    container::{MAX_FORWARDED_PORTS, UnitTraffic},
    firewall::{IngressRules, tcp_ports},
    view::FrameLine,
};
use tokio::sync::{Semaphore, watch};
use tokio_util::task::AbortOnDropHandle;

use super::pods::{ChangedPodUnits, CountedTraffic, PodStreams, WorkloadStates};

mod forward;
mod host;
mod listener;
mod wanted;

pub(crate) use host::IngressHost;
use listener::Listener;
pub(crate) use wanted::WantedIngress;

/// The most connections to the ports of one unit. A pod takes 400 streams: hooks of the unit always have room beside them.
const MAX_CONNECTIONS: usize = 256;

/// The most connections to one unit that wait for its pods to open a stream. Pods queue 64 such requests, and hooks need
/// some of them.
const MAX_OPENING: usize = 32;

/// The listeners for one model's units on this host. Dropping it closes them and their connections.
#[derive(Debug)]
pub(crate) struct Ingress {
    host: Arc<IngressHost>,
    model: ModelUuid,
    streams: PodStreams,
    states: Arc<WorkloadStates>,
    wanted: WantedIngress,
    /// The units with pods: nothing listens for others.
    with_pods: BTreeSet<UnitName>,
    units: BTreeMap<UnitName, UnitListeners>,
}

/// The listeners for one unit.
#[derive(Debug)]
struct UnitListeners {
    /// The unit's present rules. Its connections follow them.
    rules: watch::Sender<Arc<IngressRules>>,
    way: Arc<UnitWay>,
    ports: BTreeMap<u16, Vec<AbortOnDropHandle<()>>>,
}

/// The way to one unit, which its listeners share.
#[derive(Debug)]
struct UnitWay {
    model: ModelUuid,
    unit: UnitName,
    streams: PodStreams,
    rules: watch::Receiver<Arc<IngressRules>>,
    connections: Arc<Semaphore>,
    opening: Semaphore,
    /// The traffic since the keeper listens for the unit.
    traffic: CountedTraffic,
    /// The traffic since the agent runs it, with that of other units.
    total: Arc<CountedTraffic>,
}

impl Ingress {
    /// Creates the listeners for a model without units.
    pub(crate) fn new(
        host: Arc<IngressHost>,
        model: ModelUuid,
        streams: PodStreams,
        states: Arc<WorkloadStates>,
    ) -> Self {
        let (wanted, with_pods, units) = (WantedIngress::default(), BTreeSet::new(), BTreeMap::new());
        Self { host, model, streams, states, wanted, with_pods, units }
    }

    /// Records the units for which pods begin and end.
    pub(crate) fn have_pods(&mut self, ChangedPodUnits { came, went }: ChangedPodUnits) {
        for unit in went {
            self.with_pods.remove(&unit);
            self.follow(&unit);
        }
        for unit in came {
            self.with_pods.insert(unit.clone());
            self.follow(&unit);
        }
    }

    /// Records the changes of a frame's line, and opens and closes listeners after the frame's last one.
    pub(crate) fn observe(&mut self, line: &FrameLine) {
        for unit in self.wanted.observe(line) {
            self.follow(&unit);
        }
    }

    /// Closes all listeners and their connections.
    pub(crate) fn close(&mut self) {
        self.units.clear();
    }

    /// Makes the listeners for a unit those of its present rules.
    fn follow(&mut self, unit: &UnitName) {
        let Some(rules) = self.wanted.rules(unit).filter(|_| self.with_pods.contains(unit)) else {
            self.units.remove(unit);
            return;
        };
        let ports: BTreeSet<u16> = tcp_ports(&rules).take(MAX_FORWARDED_PORTS).collect();
        let listeners = self.units.entry(unit.clone()).or_insert_with(|| {
            UnitListeners::new(self.model, unit.clone(), self.streams.clone(), Arc::clone(&rules))
        });
        let is_new = listeners.rules.send_if_modified(|present| {
            let is_new = *present != rules;
            *present = Arc::clone(&rules);
            is_new
        });
        listeners.ports.retain(|port, _| ports.contains(port));
        let has_more = || tcp_ports(&rules).nth(MAX_FORWARDED_PORTS).is_some();
        if (is_new || listeners.ports.is_empty()) && has_more() {
            tracing::warn!(
                %unit,
                "the unit has more than {MAX_FORWARDED_PORTS} ports open: the agent listens on the first of them"
            );
        }
        for port in ports {
            let (host, way) = (&self.host, &listeners.way);
            listeners.ports.entry(port).or_insert_with(|| {
                let states = &self.states;
                let start = |address| {
                    let address = SocketAddr::new(address, port);
                    let (host, way, states) = (Arc::clone(host), Arc::clone(way), Arc::clone(states));
                    Listener { host, way, states, address }.start()
                };
                host.addresses().iter().copied().map(start).collect()
            });
        }
    }
}

impl UnitListeners {
    fn new(model: ModelUuid, unit: UnitName, streams: PodStreams, rules: Arc<IngressRules>) -> Self {
        let rules = watch::Sender::new(rules);
        let way = UnitWay {
            model,
            total: streams.traffic(&unit),
            unit,
            streams,
            rules: rules.subscribe(),
            connections: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            opening: Semaphore::new(MAX_OPENING),
            traffic: CountedTraffic::default(),
        };
        Self { rules, way: Arc::new(way), ports: BTreeMap::new() }
    }
}

impl Drop for UnitWay {
    fn drop(&mut self) {
        let UnitTraffic { connections, received, sent } = self.traffic.counts();
        tracing::info!(
            unit = %self.unit,
            model = %self.model,
            connections,
            received,
            sent,
            "the agent listens for the unit no longer"
        );
    }
}

#[cfg(test)]
mod tests;
