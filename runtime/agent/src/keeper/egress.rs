//! Connections of workloads to hosts outside of their model, as operators grant them. The keeper looks names up, asks the
//! policy for each address, and connects to the address that it has asked for.

use std::{
    collections::BTreeSet,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{
    ModelUuid, UnitName,
    egress::{EgressAttempt, EgressBars, EgressGrants, EgressReach, EgressRefusal},
    pod::DialOrder,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
    time::timeout,
};

use super::{
    places::{Place, Places},
    relay::ResetOnDrop,
};
use crate::options::EgressOptions;

mod controllers;
mod names;
#[cfg(test)]
pub(crate) mod played;
mod way;

pub(crate) use controllers::ControllerPlaces;
use names::HostLookups;
pub(crate) use way::{EgressWay, SystemWay};

/// The most connections of an agent to hosts outside. Each takes two descriptors and at most 32 KiB of buffers.
const MAX_CONNECTIONS: usize = 512;

/// The most of them that one model has, so that others have room.
const MAX_OF_ONE_MODEL: usize = 256;

/// The most addresses of a name to which one call connects.
const MAX_TRIED: usize = 3;

/// The time for a host to take a connection.
const CONNECTS_WITHIN: Duration = Duration::from_secs(8);

/// The part of these connections that all models of an agent share.
pub(crate) struct EgressHost {
    options: EgressOptions,
    /// The addresses by which this host is reached, beside those that its interfaces have.
    told: Vec<IpAddr>,
    controllers: ControllerPlaces,
    way: Arc<dyn EgressWay>,
    lookups: HostLookups,
    connections: Arc<Semaphore>,
    of_models: Places<ModelUuid>,
}

/// A call of a workload to a host outside.
pub(crate) struct EgressCall<'a> {
    /// The model of the unit.
    pub(crate) model: ModelUuid,
    /// The unit.
    pub(crate) unit: &'a UnitName,
    /// The present grants of its application.
    pub(crate) grants: &'a EgressGrants,
    /// The addresses and ports of other agents.
    pub(crate) agents: BTreeSet<(IpAddr, u16)>,
    /// The destination, as the workload names it.
    pub(crate) order: &'a DialOrder,
}

/// A connection to a host outside.
pub(crate) struct OpenedEgress {
    pub(crate) stream: ResetOnDrop,
    /// The destination as it was granted.
    pub(crate) granted: GrantedEgress,
    _places: (Place<ModelUuid>, OwnedSemaphorePermit),
}

/// The destination of a connection, to be judged again when grants change.
#[derive(Debug, Clone)]
pub(crate) struct GrantedEgress {
    bars: Arc<EgressBars>,
    name: Option<String>,
    address: IpAddr,
    port: u16,
}

/// The reason why there is no connection to a host outside.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EgressFailure {
    #[error(transparent)]
    Refused(#[from] EgressRefusal),
    #[error("{0}")]
    TooMany(&'static str),
    #[error("{0}")]
    Unreachable(String),
}

impl GrantedEgress {
    /// Returns true if grants admit the connection.
    pub(crate) fn is_admitted(&self, grants: &EgressGrants) -> bool {
        let Self { bars, name, address, port } = self;
        let attempt = EgressAttempt { name: name.as_deref(), address: *address, port: *port };
        grants.admit(bars, attempt).is_ok()
    }
}

impl EgressHost {
    /// Creates the shared part. `told` are the addresses by which this host is reached.
    pub(crate) fn new(
        options: EgressOptions,
        told: Vec<IpAddr>,
        controllers: ControllerPlaces,
        way: Arc<dyn EgressWay>,
    ) -> Self {
        let (lookups, connections) = (HostLookups::default(), Arc::new(Semaphore::new(MAX_CONNECTIONS)));
        let of_models = Places::new(MAX_OF_ONE_MODEL);
        Self { options, told, controllers, way, lookups, connections, of_models }
    }

    /// Returns true if workloads may ask for a name on some port.
    pub(crate) fn has_name(&self, grants: &EgressGrants, name: &str) -> bool {
        self.options.reach != EgressReach::Nothing && grants.may_look_up(name, None)
    }

    /// Opens a connection, if the grants admit it.
    pub(crate) async fn open(&self, call: EgressCall<'_>) -> Result<OpenedEgress, EgressFailure> {
        let DialOrder { host, port } = call.order;
        let literal = host.parse::<IpAddr>().ok().map(|address| address.to_canonical());
        let name = literal.is_none().then_some(host.as_str());
        // What is not granted costs nothing more.
        let at_once = EgressBars {
            reach: self.options.reach,
            denied: self.options.denied.clone(),
            agents: call.agents,
            ..EgressBars::default()
        };
        match literal {
            Some(address) => call.grants.admit(&at_once, EgressAttempt { name, address, port: *port })?,
            None if at_once.reach == EgressReach::Nothing => return Err(EgressRefusal::NothingCounts.into()),
            None if !call.grants.may_look_up(host, Some(*port)) => {
                return Err(EgressRefusal::NotGranted.into());
            }
            None => {}
        }
        let of_model = self.of_models.take(call.model);
        let of_model =
            of_model.ok_or(EgressFailure::TooMany("the model has too many connections to hosts outside"))?;
        let place = Arc::clone(&self.connections).try_acquire_owned();
        let place = place
            .map_err(|_| EgressFailure::TooMany("the agent has too many connections to hosts outside"))?;
        let bars = Arc::new(self.complete(at_once).await?);
        let addresses = match literal {
            Some(address) => vec![address],
            None => self.lookups.look_up(&self.way, (call.model, call.unit), host).await?,
        };
        let mut failed = EgressFailure::Unreachable("there is no host of this name".to_owned());
        let mut tried = 0;
        for address in addresses {
            if let Err(refusal) = call.grants.admit(&bars, EgressAttempt { name, address, port: *port }) {
                failed = refusal.into();
                continue;
            }
            if tried == MAX_TRIED {
                break;
            }
            tried += 1;
            match timeout(CONNECTS_WITHIN, self.way.connect(SocketAddr::new(address, *port))).await {
                Ok(Ok(stream)) => {
                    let granted = GrantedEgress { bars, name: name.map(str::to_owned), address, port: *port };
                    let stream = ResetOnDrop::new(stream);
                    return Ok(OpenedEgress { stream, granted, _places: (of_model, place) });
                }
                Ok(Err(error)) => failed = EgressFailure::Unreachable(error.to_string()),
                Err(late) => failed = EgressFailure::Unreachable(late.to_string()),
            }
        }
        Err(failed)
    }

    /// Adds the present addresses of this host and of the controllers to what no grant opens.
    async fn complete(&self, bars: EgressBars) -> Result<EgressBars, EgressFailure> {
        let way = Arc::clone(&self.way);
        let own = spawn_blocking(move || way.own_addresses()).await.map_err(std::io::Error::other).flatten();
        // Without them nothing can be judged.
        let mut own = own.map_err(|error| EgressFailure::Unreachable(error.to_string()))?;
        own.extend(self.told.iter().map(IpAddr::to_canonical));
        let controllers = self.controllers.addresses(&self.way).await;
        Ok(EgressBars { own, controllers, ..bars })
    }
}

#[cfg(test)]
mod tests;
