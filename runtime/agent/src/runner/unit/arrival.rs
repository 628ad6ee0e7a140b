//! A unit that waits for its charm to be on this host, and whose status says what keeps it away.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

use periapt_host_api::{
    CharmDigest,
    status::{AgentStatus, StatusInfo},
};
use periapt_uniter::Decision;
use tokio::time::{Instant, sleep};

use super::Unit;
use crate::runner::charms::{Loaded, NotReady, asking};

/// How long a charm may be away before its unit says why: a controller that restarts is back by then.
const TOLD_AFTER: Duration = Duration::from_secs(3);

/// What a unit says of a charm that is away.
struct Told {
    reason: String,
    /// What its agent's status was before.
    before: Option<StatusInfo<AgentStatus>>,
}

impl Unit {
    /// Waits until a charm can run, for as long as it is due that needs it; none, if it is not due any more. An error is
    /// the charm's own fault, in words for the unit's status.
    pub(super) async fn charm_in_place(
        &mut self,
        charm: CharmDigest,
        due: impl Fn(&Decision) -> bool,
    ) -> Option<Result<Loaded, String>> {
        let (world, began) = (Arc::clone(&self.world), Instant::now());
        let (mut backoff, mut told) = (asking(), None);
        let arrived = loop {
            match self.while_due(world.charms.ask(charm), &due).await {
                None => break None,
                Some(Ok(loaded)) => break Some(Ok(loaded)),
                Some(Err(NotReady::Unusable(message))) => break Some(Err(message)),
                Some(Err(NotReady::Away(reason))) if began.elapsed() >= TOLD_AFTER => {
                    self.tell(charm, reason, &mut told);
                }
                Some(Err(NotReady::Away(_))) => {}
            }
            if self.while_due(sleep(backoff.failed()), &due).await.is_none() {
                break None;
            }
        };
        if let Some(Told { before, .. }) = told {
            let view = world.mirror.view();
            let record = view.units.get(&self.name).map(|unit| &unit.record);
            let effect = before
                .zip(record)
                .and_then(|(before, record)| periapt_uniter::charm_arrived(record, &before));
            self.leave(effect);
            // The failure was just said, and whatever was said of being idle was said before.
            (self.idle_at, self.failure_at) = (None, record.map(|record| record.seq));
        }
        arrived
    }

    /// Says why a charm is away, unless that was said.
    fn tell(&mut self, charm: CharmDigest, reason: String, told: &mut Option<Told>) {
        if told.as_ref().is_some_and(|told| told.reason == reason) {
            return;
        }
        self.leave(periapt_uniter::charm_away(&self.name, charm, &reason));
        let before = match told.take() {
            Some(told) => told.before,
            // Not by way of the changes: one that was not looked at yet may end the waiting.
            None => self.world.mirror.view().units.get(&self.name).map(|unit| unit.agent_status.clone()),
        };
        *told = Some(Told { reason, before });
    }

    /// What a future comes to; none if what is due is another before.
    pub(super) async fn while_due<F: Future>(
        &mut self,
        future: F,
        due: &impl Fn(&Decision) -> bool,
    ) -> Option<F::Output> {
        let mut future = pin!(future);
        loop {
            tokio::select! {
                biased;
                output = &mut future => return Some(output),
                () = self.changes.next() => {}
            }
            if !due(&self.resolve().1) {
                return None;
            }
        }
    }
}
