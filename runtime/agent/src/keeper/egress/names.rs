//! Lookups of names for workloads, with bounds on their number, their time and what is kept of them.

use std::{collections::BTreeMap, net::IpAddr, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{ModelUuid, UnitName};
use tokio::{
    sync::Semaphore,
    task::spawn_blocking,
    time::{Instant, timeout},
};

use super::{EgressFailure, EgressWay};
use crate::keeper::places::Places;

/// The lookups at a time. Each takes a thread until the resolver answers, even if nobody waits any more.
const MAX_LOOKUPS: usize = 16;

/// The lookups of one model at a time: one whose names have a slow server leaves the others room.
const MAX_OF_ONE_MODEL: usize = 8;

/// The lookups of one unit at a time.
const MAX_OF_ONE_UNIT: usize = 4;

/// The time for a lookup, with the wait for its turn.
const ANSWERS_WITHIN: Duration = Duration::from_secs(8);

/// The time for which an answer counts. Resolvers keep answers as well, for as long as the name's owner says.
const KEPT: Duration = Duration::from_secs(30);

/// The time for which a name without an address is not looked up again.
const KEPT_WITHOUT: Duration = Duration::from_secs(5);

/// The most names of which the answers are kept.
const MAX_KEPT: usize = 1_024;

/// The most addresses of a name. Further ones are not looked at.
const MAX_ADDRESSES: usize = 16;

/// The lookups of all units of an agent.
#[derive(Debug)]
pub(super) struct HostLookups {
    known: Arc<Mutex<BTreeMap<String, Known>>>,
    all: Arc<Semaphore>,
    of_models: Places<ModelUuid>,
    of_each: Places<(ModelUuid, UnitName)>,
}

/// The answer for a name.
#[derive(Debug, Clone)]
struct Known {
    addresses: Vec<IpAddr>,
    until: Instant,
}

impl Default for HostLookups {
    fn default() -> Self {
        let (all, of_each) = (Arc::new(Semaphore::new(MAX_LOOKUPS)), Places::new(MAX_OF_ONE_UNIT));
        Self { known: Arc::default(), all, of_models: Places::new(MAX_OF_ONE_MODEL), of_each }
    }
}

impl HostLookups {
    /// Returns the addresses of a name; none if it has none.
    pub(super) async fn look_up(
        &self,
        way: &Arc<dyn EgressWay>,
        (model, unit): (ModelUuid, &UnitName),
        host: &str,
    ) -> Result<Vec<IpAddr>, EgressFailure> {
        let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        if let Some(known) = self.known.lock().get(&name).filter(|known| known.until > Instant::now()) {
            return Ok(known.addresses.clone());
        }
        let too_many = || EgressFailure::TooMany("too many names are looked up at a time");
        let of_model = self.of_models.take(model).ok_or_else(too_many)?;
        let of_unit = self.of_each.take((model, unit.clone())).ok_or_else(too_many)?;
        let answered = async {
            let permit = Arc::clone(&self.all).acquire_owned().await;
            let (way, known) = (Arc::clone(way), Arc::clone(&self.known));
            let looked_up = spawn_blocking(move || {
                let found = way.look_up(&name);
                let mut addresses = found.as_deref().unwrap_or_default().to_vec();
                addresses.truncate(MAX_ADDRESSES);
                let addresses: Vec<_> = addresses.iter().map(IpAddr::to_canonical).collect();
                keep(&mut known.lock(), name, addresses.clone());
                // They are held for as long as the resolver takes.
                drop((permit, of_model, of_unit));
                found.map(|_| addresses)
            });
            looked_up.await.map_err(std::io::Error::other).flatten()
        };
        match timeout(ANSWERS_WITHIN, answered).await {
            Ok(Ok(addresses)) => Ok(addresses),
            Ok(Err(error)) => Err(EgressFailure::Unreachable(error.to_string())),
            Err(_) => Err(EgressFailure::Unreachable("the name is not looked up in time".to_owned())),
        }
    }
}

/// Keeps an answer, unless too many are kept.
fn keep(known: &mut BTreeMap<String, Known>, name: String, addresses: Vec<IpAddr>) {
    let now = Instant::now();
    if known.len() >= MAX_KEPT {
        known.retain(|_, known| known.until > now);
    }
    if known.len() < MAX_KEPT || known.contains_key(&name) {
        let until = now + if addresses.is_empty() { KEPT_WITHOUT } else { KEPT };
        known.insert(name, Known { addresses, until });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use uuid::Uuid;

    use super::*;
    use crate::keeper::egress::played::PlayedWay;

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_for_a_while_and_never_too_many() {
        let mut known = BTreeMap::new();
        for number in 0..=MAX_KEPT {
            keep(&mut known, format!("host-{number}.example"), vec![IpAddr::from([203, 0, 113, 7])]);
        }
        assert_eq!(known.len(), MAX_KEPT);
        assert!(!known.contains_key(&format!("host-{MAX_KEPT}.example")));
        keep(&mut known, "host-1.example".to_owned(), Vec::new());
        assert!(known["host-1.example"].addresses.is_empty(), "a known name has its newest answer");
        tokio::time::advance(KEPT).await;
        keep(&mut known, "new.example".to_owned(), Vec::new());
        assert_eq!(known.len(), 1, "old answers make room");
    }

    #[tokio::test]
    async fn a_model_that_has_all_its_lookups_leaves_others_room() {
        let (played, lookups) = (PlayedWay::of(&[]), Arc::new(HostLookups::default()));
        played.hangs.store(true, Ordering::Relaxed);
        let ask = |model: u128, unit: usize, host: usize| {
            let (lookups, way) = (Arc::clone(&lookups), Arc::clone(&played) as Arc<dyn EgressWay>);
            let unit: UnitName = format!("app/{unit}").parse().unwrap();
            async move {
                let host = format!("host-{host}.example.com");
                lookups.look_up(&way, (ModelUuid(Uuid::from_u128(model)), &unit), &host).await
            }
        };
        // No unit has more than its own share.
        let hang = |host| tokio::spawn(ask(1, host / MAX_OF_ONE_UNIT, host));
        let hanging: Vec<_> = (0..MAX_OF_ONE_MODEL).map(hang).collect();
        while played.asked.lock().len() < MAX_OF_ONE_MODEL {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let of_another_unit = ask(1, MAX_OF_ONE_MODEL, MAX_OF_ONE_MODEL).await;
        assert!(matches!(of_another_unit, Err(EgressFailure::TooMany(_))), "{of_another_unit:?}");
        let other = tokio::spawn(ask(2, 0, MAX_OF_ONE_MODEL));
        while played.asked.lock().len() == MAX_OF_ONE_MODEL && !other.is_finished() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(played.asked.lock().len(), MAX_OF_ONE_MODEL + 1, "another model's name is looked up");
        played.hangs.store(false, Ordering::Relaxed);
        for hung in hanging.into_iter().chain([other]) {
            let failed = hung.await.unwrap();
            assert!(matches!(failed, Err(EgressFailure::Unreachable(_))), "{failed:?}");
        }
        // A place is free a moment after its lookup.
        while let Err(EgressFailure::TooMany(_)) = ask(1, 0, MAX_OF_ONE_MODEL + 1).await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}
