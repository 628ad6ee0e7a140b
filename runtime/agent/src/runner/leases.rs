//! The leases that the keeper holds for this runner's units.

use std::{collections::BTreeMap, time::Duration};

use parking_lot::Mutex;
use periapt_hook::{HeldLease, LeaseState};
use periapt_host_api::{
    UnitName,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    timing::{LEASE_RENEWED_WITHIN, LEASE_SECONDS},
};
use tokio::time::timeout;

use super::link::Link;
use crate::{
    clock::BootTime,
    protocol::{Call, CallOutcome, Grant},
};

/// The leases, by unit.
#[derive(Debug, Default)]
pub(crate) struct LeaseBook(Mutex<BTreeMap<UnitName, Grant>>);

impl LeaseBook {
    /// Replaces all leases by those of the keeper.
    pub(crate) fn replace(&self, grants: Vec<Grant>) {
        let grants = grants.into_iter().map(|grant| (grant.unit.clone(), grant)).collect();
        *self.0.lock() = grants;
    }

    /// Returns one unit's lease. The hook decides if the remaining time is enough.
    pub(crate) fn state(&self, unit: &UnitName) -> LeaseState {
        let grants = self.0.lock();
        let held =
            grants.get(unit).map(|grant| HeldLease { term: grant.term, valid_until_ms: grant.until.0 });
        LeaseState { held }
    }

    /// Claims or renews one unit's lease, and returns the result.
    pub(crate) async fn renew(&self, link: &Link, unit: &UnitName) -> LeaseState {
        let claim = LeaseClaim {
            unit: unit.clone(),
            application: unit.application().clone(),
            seconds: LEASE_SECONDS,
        };
        // This is earlier than the keeper's time of sending, so the lease ends no later here than
        // on the controller.
        let asked_at = BootTime::now();
        let call = link.call(Call::Command(Box::new(RunnerCommand::Claim(claim))));
        if let Ok(CallOutcome::Answered { answer, .. }) = timeout(LEASE_RENEWED_WITHIN, call).await {
            let mut grants = self.0.lock();
            match answer {
                RunnerAnswer::Granted { term, seconds } => {
                    let until = asked_at.after(Duration::from_secs(u64::from(seconds)));
                    grants.insert(unit.clone(), Grant { unit: unit.clone(), term, until });
                }
                RunnerAnswer::Held { .. } => {
                    grants.remove(unit);
                }
                RunnerAnswer::Attached { .. } | RunnerAnswer::Done => {}
            }
        }
        self.state(unit)
    }
}
