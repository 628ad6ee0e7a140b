//! Leadership of one model's units: claimed and renewed by the keeper, whether a runner lives or not.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use periapt_host_api::{
    ModelUuid, UnitName,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    api::MAX_COMMANDS,
    command::CommandResult,
    view::FrameLine,
};
use tokio::sync::{Notify, watch};

use super::{
    controller::Controller,
    roster::{Roster, Urgency},
};
use crate::{backoff::Backoff, clock::BootTime, protocol::Grant};

/// How often leases are renewed (`design.md` section 7): a quarter of their length, so that three rounds may be
/// lost before one lapses.
const RENEW_EVERY: Duration = Duration::from_secs(15);

/// The least time between two rounds, whatever happens.
const ROUND_AFTER: Duration = Duration::from_millis(100);

/// What is known of one model's leaderships.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    roster: Arc<Mutex<Roster>>,
    wake: Arc<Notify>,
    grants: watch::Sender<BTreeMap<UnitName, Grant>>,
}

impl Leases {
    /// Of no unit yet.
    pub(crate) fn new() -> Self {
        Self { roster: Arc::default(), wake: Arc::default(), grants: watch::Sender::new(BTreeMap::new()) }
    }

    /// Takes note of what a frame tells of units and leaders.
    pub(crate) fn observe(&self, line: &FrameLine) {
        let mut roster = self.roster.lock().unwrap_or_else(PoisonError::into_inner);
        if roster.observe(line) == Urgency::Claim {
            self.wake.notify_one();
        }
    }

    /// Reads the roster.
    pub(crate) fn roster<T>(&self, read: impl FnOnce(&Roster) -> T) -> T {
        read(&self.roster.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What is held, and every change of it.
    pub(crate) fn grants(&self) -> watch::Receiver<BTreeMap<UnitName, Grant>> {
        self.grants.subscribe()
    }

    /// A claim was answered, by a round or on a runner's own behalf.
    pub(crate) fn answered(&self, unit: &UnitName, answer: &RunnerAnswer, sent_at: BootTime) {
        self.grants.send_if_modified(|grants| match answer {
            RunnerAnswer::Granted { term, seconds } => {
                let until = sent_at.after(Duration::from_secs(u64::from(*seconds)));
                let newer = grants.get(unit).is_none_or(|held| held.term < *term || held.until < until);
                if newer {
                    grants.insert(unit.clone(), Grant { unit: unit.clone(), term: *term, until });
                }
                newer
            }
            RunnerAnswer::Held { .. } => grants.remove(unit).is_some(),
            _ => false,
        });
    }

    /// Claims and renews until it is dropped.
    pub(crate) async fn run<C: Controller>(self, controller: C, model: ModelUuid) {
        let mut backoff = Backoff::network();
        loop {
            let claims = self.roster(Roster::claims);
            let wait = match self.round(&controller, model, claims).await {
                true => {
                    backoff.succeeded();
                    RENEW_EVERY
                }
                false => backoff.failed(),
            };
            let woken = async {
                tokio::time::sleep(ROUND_AFTER).await;
                self.wake.notified().await;
            };
            let _ = tokio::time::timeout(wait.max(ROUND_AFTER), woken).await;
        }
    }

    /// One bulk call for all claims; false if the controller is away.
    async fn round<C: Controller>(&self, controller: &C, model: ModelUuid, claims: Vec<LeaseClaim>) -> bool {
        for part in claims.chunks(MAX_COMMANDS) {
            let sent_at = BootTime::now();
            let commands = part.iter().cloned().map(RunnerCommand::Claim).collect();
            match controller.commands(model, commands).await {
                Ok(results) => {
                    for (claim, result) in part.iter().zip(results.results) {
                        match result {
                            CommandResult::Ok(answer) => self.answered(&claim.unit, &answer, sent_at),
                            CommandResult::Error(refusal) => {
                                tracing::debug!(unit = %claim.unit, %refusal, "leadership was refused");
                            }
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%model, %error, "leases were not renewed");
                    return false;
                }
            }
        }
        true
    }
}
