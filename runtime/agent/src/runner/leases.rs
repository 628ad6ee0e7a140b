//! The leaderships that the keeper holds for this runner's units.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

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

/// What is held.
#[derive(Debug, Default)]
pub(crate) struct LeaseBook(Mutex<BTreeMap<UnitName, Grant>>);

impl LeaseBook {
    /// The keeper says what it holds, all of it.
    pub(crate) fn replace(&self, grants: Vec<Grant>) {
        let grants = grants.into_iter().map(|grant| (grant.unit.clone(), grant)).collect();
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = grants;
    }

    /// What one unit holds. Whether enough of it is left is for the hook to decide.
    pub(crate) fn state(&self, unit: &UnitName) -> LeaseState {
        let grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let held =
            grants.get(unit).map(|grant| HeldLease { term: grant.term, valid_until_ms: grant.until.0 });
        LeaseState { held }
    }

    /// Claims or renews one unit's leadership, and tells what is held after that.
    pub(crate) async fn renew(&self, link: &Link, unit: &UnitName) -> LeaseState {
        let claim = LeaseClaim {
            unit: unit.clone(),
            application: unit.application().clone(),
            seconds: LEASE_SECONDS,
        };
        // Before the keeper's own time of sending, so on the safe side of it.
        let asked_at = BootTime::now();
        let call = link.call(Call::Command(Box::new(RunnerCommand::Claim(claim))));
        if let Ok(CallOutcome::Answered { answer, .. }) = timeout(LEASE_RENEWED_WITHIN, call).await {
            let mut grants = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
