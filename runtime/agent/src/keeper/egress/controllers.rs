//! The addresses of controllers, which no workload reaches.

use std::{collections::BTreeSet, net::IpAddr, sync::Arc, time::Duration};

use tokio::{
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::EgressWay;
use crate::keeper::addresses::KeptAddresses;

/// The time after which names of controllers are looked up again.
const FRESH: Duration = Duration::from_secs(60);

/// The time for all lookups together. Without an answer the former addresses count.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);

/// The controllers that the agent was started with, and those that it was told of.
#[derive(Debug)]
pub(crate) struct ControllerPlaces {
    /// The hosts with their ports, such as `node-1.example:17070`.
    given: Vec<String>,
    kept: Option<KeptAddresses>,
    known: Mutex<KnownPlaces>,
}

#[derive(Debug, Default)]
struct KnownPlaces {
    addresses: BTreeSet<IpAddr>,
    stale_at: Option<Instant>,
}

impl ControllerPlaces {
    /// Creates the places of controllers, of which no address is known.
    pub(crate) fn new(given: Vec<String>, kept: Option<KeptAddresses>) -> Self {
        Self { given, kept, known: Mutex::default() }
    }

    /// Returns the addresses, which are a minute old at most.
    pub(super) async fn addresses(&self, way: &Arc<dyn EgressWay>) -> BTreeSet<IpAddr> {
        let mut known = self.known.lock().await;
        if known.stale_at.is_none_or(|at| at <= Instant::now()) {
            let (way, given, kept) = (Arc::clone(way), self.given.clone(), self.kept.clone());
            let looked_up = spawn_blocking(move || look_up(&*way, given, kept.as_ref()));
            match timeout(ANSWERS_WITHIN, looked_up).await {
                Ok(Ok((addresses, 0))) => known.addresses = addresses,
                // What the others had still counts.
                Ok(Ok((addresses, without))) => {
                    tracing::info!(without, "the addresses of some controllers cannot be looked up");
                    known.addresses.extend(addresses);
                }
                Ok(Err(_)) | Err(_) => tracing::info!("no addresses of controllers can be looked up"),
            }
            known.stale_at = Some(Instant::now() + FRESH);
        }
        known.addresses.clone()
    }
}

/// Returns the addresses of controllers, and the number of names that have none.
fn look_up(
    way: &dyn EgressWay,
    given: Vec<String>,
    kept: Option<&KeptAddresses>,
) -> (BTreeSet<IpAddr>, usize) {
    let told = kept.and_then(KeptAddresses::read);
    let servers = given.into_iter().chain(told.iter().flat_map(|told| told.servers()));
    let servers: BTreeSet<String> = servers.collect();
    let (mut addresses, mut without) = (BTreeSet::new(), 0);
    for server in servers {
        let host = server.rsplit_once(':').map_or(server.as_str(), |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let found = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            Err(_) => way.look_up(host).unwrap_or_default(),
        };
        without += usize::from(found.is_empty());
        addresses.extend(found.iter().map(IpAddr::to_canonical));
    }
    (addresses, without)
}
