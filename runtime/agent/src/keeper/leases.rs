//! The leadership of one model's units, which the keeper claims and renews even without a runner.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use periapt_host_api::{
    ModelUuid, UnitName,
    agent::{LeaseClaim, RunnerAnswer, RunnerCommand},
    api::MAX_COMMANDS,
    command::CommandResult,
    timing::LEASE_RENEWED_EVERY,
    view::FrameLine,
};
use tokio::{
    sync::{Notify, watch},
    time::{Instant, timeout_at},
};

use super::{
    controller::Controller,
    local_units::{LocalUnits, Urgency},
};
use crate::{
    clock::{BootClock, BootTime},
    protocol::Grant,
};
use periapt_client::Backoff;

/// The least time between two claims for one unit. The first claim is sent at once, because a unit's first hooks wait
/// for its answer.
const ROUND_AFTER: Duration = Duration::from_millis(100);

/// The leases of one model's units.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    local_units: Arc<Mutex<LocalUnits>>,
    wake: Arc<Notify>,
    grants: watch::Sender<BTreeMap<UnitName, Grant>>,
    clock: BootClock,
}

impl Leases {
    /// Creates an empty set, whose leases end by this clock.
    pub(crate) fn new(clock: BootClock) -> Self {
        Self {
            local_units: Arc::default(),
            wake: Arc::default(),
            grants: watch::Sender::new(BTreeMap::new()),
            clock,
        }
    }

    /// Records the units and leaders of a frame's line.
    pub(crate) fn observe(&self, line: &FrameLine) {
        let mut local_units = self.local_units.lock();
        if local_units.observe(line) == Urgency::Claim {
            self.wake.notify_one();
        }
    }

    /// Reads the units of the model on this agent.
    pub(crate) fn local_units<T>(&self, read: impl FnOnce(&LocalUnits) -> T) -> T {
        read(&self.local_units.lock())
    }

    /// Returns the current leases and their changes.
    pub(crate) fn grants(&self) -> watch::Receiver<BTreeMap<UnitName, Grant>> {
        self.grants.subscribe()
    }

    /// Records the answer to a claim, made by a round or by a runner.
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
        let mut renew_at = Instant::now();
        loop {
            let all = renew_at <= Instant::now();
            let claims = {
                let mut local_units = self.local_units.lock();
                let claims = if all { local_units.claims() } else { local_units.due_at_once() };
                local_units.claimed(&claims);
                claims
            };
            let answered = self.round(&controller, model, claims).await;
            match (answered, all) {
                (Completeness::All, true) => renew_at = after(LEASE_RENEWED_EVERY),
                (Completeness::All, false) => {}
                // Units wait for the answers, so all claims are repeated as soon as the controller may be back.
                (Completeness::NotAll, true) => renew_at = after(backoff.failed().max(ROUND_AFTER)),
                // New units, however many come, do not delay the other units' claims.
                (Completeness::NotAll, false) => {
                    renew_at = renew_at.min(after(backoff.failed().max(ROUND_AFTER)))
                }
            }
            if answered == Completeness::All {
                backoff.succeeded();
            }
            self.rest(renew_at).await;
        }
    }

    /// Waits until claims are due: all of them at `renew_at`, or some of them because of a new unit or an application
    /// without a leader.
    async fn rest(&self, renew_at: Instant) {
        let again_at = after(ROUND_AFTER);
        let mut until = renew_at;
        while timeout_at(until, self.wake.notified()).await.is_ok() {
            if self.local_units(LocalUnits::has_unclaimed) || again_at <= Instant::now() {
                return;
            }
            until = until.min(again_at);
        }
    }

    /// Makes these claims in as few bulk calls as possible.
    async fn round<C: Controller>(
        &self,
        controller: &C,
        model: ModelUuid,
        claims: Vec<LeaseClaim>,
    ) -> Completeness {
        let mut answered = Completeness::All;
        for part in claims.chunks(MAX_COMMANDS) {
            let sent_at = self.clock.now();
            let commands: Vec<_> = part.iter().cloned().map(RunnerCommand::Claim).collect();
            match controller.commands(model, commands.into()).await {
                Ok(results) => {
                    if results.results.len() < part.len() {
                        answered = Completeness::NotAll;
                    }
                    for (claim, result) in part.iter().zip(results.results) {
                        match result {
                            CommandResult::Ok(answer) => self.answered(&claim.unit, &answer, sent_at),
                            CommandResult::Error(refusal) => {
                                tracing::debug!(unit = %claim.unit, %refusal, "leadership was refused");
                                if refusal.code.is_temporary() {
                                    answered = Completeness::NotAll;
                                }
                            }
                        }
                    }
                }
                Err(error) => {
                    tracing::debug!(%model, %error, "leases were not renewed");
                    return Completeness::NotAll;
                }
            }
        }
        answered
    }
}

/// The completeness of a round's answers; refusals count as answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Completeness {
    All,
    NotAll,
}

fn after(wait: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(wait).unwrap_or(now)
}
