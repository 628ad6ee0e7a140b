//! The leases of a keeper without its runners, for simulations of several controllers.

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use periapt_client::Client;
use periapt_hook::HeldLease;
use periapt_host_api::{AgentName, ModelUuid, UnitName};

use super::{
    addresses::KeptAddresses,
    controller::HttpController,
    follow::{Follow, Watch},
    leases::Leases,
};
use crate::{clock::BootClock, protocol::Grant};

/// The part of a keeper that follows one model's view and keeps its units' leaderships: the keeper's own code, on a
/// clock that a simulation gives.
pub struct LeaseKeeper {
    leases: Leases,
    watch: Follow<Watch<HttpController>>,
    controller: HttpController,
    model: ModelUuid,
}

impl LeaseKeeper {
    /// Creates the keeper of an agent's units of a model. `boot_ms` is the host's clock of leases, in milliseconds.
    /// `directory` is the one of the agent's identity.
    pub fn new(
        client: Client,
        agent: AgentName,
        model: ModelUuid,
        directory: PathBuf,
        boot_ms: impl Fn() -> u64 + Send + Sync + 'static,
    ) -> Self {
        let kept = KeptAddresses::in_directory(directory);
        let controller = HttpController::new(client, agent, kept, Arc::default());
        let watch = Follow::new(Watch::new(controller.clone(), model));
        Self { leases: Leases::new(BootClock::Simulated(Arc::new(boot_ms))), watch, controller, model }
    }

    /// Follows the view and claims until it is dropped. Calls `changed` with the leases that hooks would be answered
    /// from, whenever they change.
    pub async fn run(self, mut changed: impl FnMut(BTreeMap<UnitName, HeldLease>)) {
        let Self { leases, watch, controller, model } = self;
        let (followed, mut grants) = (follow(watch, leases.clone()), leases.grants());
        let tell = async {
            // The sender lives as long as the claims.
            while grants.changed().await.is_ok() {
                let held = |grant: &Grant| HeldLease { term: grant.term, valid_until_ms: grant.until.0 };
                let all = grants.borrow_and_update();
                let leases = all.iter().map(|(unit, grant)| (unit.clone(), held(grant))).collect();
                drop(all);
                changed(leases);
            }
        };
        tokio::join!(leases.run(controller, model), followed, tell);
    }
}

/// Tells the leases each line of the view.
async fn follow(mut watch: Follow<Watch<HttpController>>, leases: Leases) {
    loop {
        leases.observe(&watch.next().await);
    }
}
