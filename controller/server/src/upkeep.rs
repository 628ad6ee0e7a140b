//! Records do not grow for ever: logs, status history and journal are pruned by age and number, and those of a
//! model that is gone are forgotten.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use periapt_host_api::{ModelUuid, Timestamp};
use periapt_model::{ModelState, RecordKind};
use periapt_store::{Store, StoreError, key};
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, published::Subscription, store_slot::StoreSlot};

/// How often it is looked whether a model is gone.
const LOOK: Duration = Duration::from_secs(10);
/// How often records are pruned, in seconds.
const INTERVAL: i64 = 600;
/// How long log lines and status history are kept (ST-3), in seconds.
const MAX_AGE: i64 = 14 * 24 * 3600;
/// The most log lines of one model: some hundred MiB at the length of most.
const MAX_LOG_LINES: usize = 1_000_000;
/// The most lines of one entity's status history.
const MAX_STATUSES: usize = 1_000;
/// The newest hooks of each unit (`design.md` section 9).
const MAX_HOOKS: usize = 50;

/// The one loop that prunes.
pub(crate) struct Upkeep {
    pub(crate) state: Subscription,
    pub(crate) store: StoreSlot,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Upkeep {
    /// Prunes now and then until it is told to stop.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut known = BTreeSet::new();
        let mut due = self.clock.now();
        loop {
            if let Err(error) = self.round(&mut known, &mut due).await {
                tracing::warn!(%error, "records could not be pruned");
            }
            tokio::select! {
                () = stop.cancelled() => return,
                () = self.clock.sleep(LOOK) => {}
            }
        }
    }

    async fn round(&self, known: &mut BTreeSet<ModelUuid>, due: &mut Timestamp) -> Result<(), StoreError> {
        let published = self.state.current();
        let models: BTreeSet<ModelUuid> = published.root.models().map(|(uuid, _)| *uuid).collect();
        let Some(store) = self.store.get() else { return Ok(()) };
        for gone in known.difference(&models) {
            store.forget(&key::records_of_model(gone)).await?;
        }
        *known = models;
        let now = self.clock.now();
        if now < *due {
            return Ok(());
        }
        *due = seconds_from(now, INTERVAL);
        for (uuid, state) in published.root.models() {
            prune(&*store, uuid, state, seconds_from(now, -MAX_AGE)).await?;
        }
        Ok(())
    }
}

async fn prune(
    store: &dyn Store,
    model: &ModelUuid,
    state: &ModelState,
    oldest: Timestamp,
) -> Result<(), StoreError> {
    store.prune(&key::record_prefix(model, RecordKind::Log, ""), oldest, MAX_LOG_LINES).await?;
    for application in state.applications() {
        let name = application.name.as_str();
        store.prune(&key::record_prefix(model, RecordKind::Status, name), oldest, MAX_STATUSES).await?;
    }
    for unit in state.units() {
        let name = unit.name.to_string();
        store.prune(&key::record_prefix(model, RecordKind::Status, &name), oldest, MAX_STATUSES).await?;
        store.prune(&key::record_prefix(model, RecordKind::Journal, &name), oldest, MAX_HOOKS).await?;
    }
    Ok(())
}

fn seconds_from(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(now)
}
