//! Records do not grow for ever: logs, status history and journal are pruned by age and number, and those of a
//! model or a task that is gone are forgotten.
//!
//! The store's own list of sequences says what there is to prune. So the records of a removed unit grow old and go
//! as all others, and those of a model that was removed just before a crash are found at the next start.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{ModelUuid, Timestamp};
use periapt_model::RecordKind;
use periapt_store::{Order, Record, Store, StoreError, key};
use tokio_util::sync::CancellationToken;

use crate::{clock::Clock, published::Subscription, store_slot::StoreSlot};

/// How often it is looked whether a model is gone.
const LOOK: Duration = Duration::from_secs(10);
/// How often records are pruned, in seconds.
const INTERVAL: i64 = 600;
/// How long log lines and journals are kept, in seconds. Status history is kept as the model's configuration says.
const MAX_AGE: i64 = 14 * 24 * 3600;
/// The most log lines of one model: some hundred MiB at the length of most.
const MAX_LOG_LINES: usize = 1_000_000;
/// The most lines of one entity's status history.
const MAX_STATUSES: usize = 1_000;
/// What a line of status history takes at most: its message and its data are cut where they come in.
const LARGEST_STATUS: u64 = 32 << 10;
/// The newest hooks of each unit (`design.md` section 9).
const MAX_HOOKS: usize = 50;
/// How many names of sequences are held at a time.
const PAGE: usize = 1_000;

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
        for gone in known.difference(&models) {
            self.store()?.forget(&key::records_of_model(gone)).await?;
        }
        *known = models;
        let now = self.clock.now();
        if now < *due {
            return Ok(());
        }
        self.prune_all(now).await?;
        *due = seconds_from(now, INTERVAL);
        Ok(())
    }

    /// Walks over all sequences that the store has.
    async fn prune_all(&self, now: Timestamp) -> Result<(), StoreError> {
        let histories = self.count_histories().await?;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let names = self.store()?.sequences(after.as_deref(), PAGE).await?;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(last.clone());
            for name in names {
                let Some((model, kind)) = key::parse_records(&name) else {
                    tracing::warn!(name = %name.escape_ascii(), "records of an unknown kind are left alone");
                    continue;
                };
                // The store is asked for each time, so that it can be closed between any two.
                let store = self.store()?;
                match self.is_gone(&*store, &model, &name).await? {
                    true => store.forget(&key::records_of_model(&model)).await?,
                    false if kind == RecordKind::Task => {
                        if self.is_of_forgotten_task(&*store, &name).await? {
                            store.forget(&name).await?;
                        }
                    }
                    false if kind == RecordKind::Status => {
                        let among = histories.get(&model).copied().unwrap_or(1);
                        self.prune_history(&*store, &model, &name, now, among).await?;
                    }
                    false => {
                        let oldest = seconds_from(now, -MAX_AGE);
                        store.prune(&name, oldest, most(kind)).await?;
                    }
                }
            }
        }
    }

    /// How many status histories each model has.
    async fn count_histories(&self) -> Result<BTreeMap<ModelUuid, u64>, StoreError> {
        let (mut counts, mut after) = (BTreeMap::new(), None::<Vec<u8>>);
        loop {
            let names = self.store()?.sequences(after.as_deref(), PAGE).await?;
            let Some(last) = names.last() else { return Ok(counts) };
            after = Some(last.clone());
            for (model, kind) in names.iter().filter_map(|name| key::parse_records(name)) {
                if kind == RecordKind::Status {
                    *counts.entry(model).or_default() += 1;
                }
            }
        }
    }

    /// Prunes one history by age, and to its share of what the model keeps: the size is divided evenly, so that no
    /// unit's chatter costs another its history.
    async fn prune_history(
        &self,
        store: &dyn Store,
        model: &ModelUuid,
        name: &[u8],
        now: Timestamp,
        among: u64,
    ) -> Result<(), StoreError> {
        let published = self.state.current();
        let config =
            published.root.model(model).map(|state| state.model().config.clone()).unwrap_or_default();
        let share = (u64::from(config.max_status_history_size) << 20) / among.max(1);
        let keep = match share / LARGEST_STATUS >= MAX_STATUSES as u64 {
            true => MAX_STATUSES,
            false => {
                fitting(&store.records(name, Order::NewestFirst { before: None }, MAX_STATUSES).await?, share)
            }
        };
        let oldest = seconds_from(now, -i64::from(config.max_status_history_age));
        store.prune(name, oldest, keep).await.map(drop)
    }

    /// Whether a model of which there are records was removed. One that is not shown yet because it was made this
    /// moment has no record that is older than what is shown.
    async fn is_gone(&self, store: &dyn Store, model: &ModelUuid, name: &[u8]) -> Result<bool, StoreError> {
        let published = self.state.current();
        if published.root.model(model).is_some() {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    /// Whether a task of which there are records is kept no longer.
    async fn is_of_forgotten_task(&self, store: &dyn Store, name: &[u8]) -> Result<bool, StoreError> {
        let Some((model, task)) = key::parse_task_records(name) else { return Ok(false) };
        let published = self.state.current();
        if published.root.model(&model).is_some_and(|state| state.task(&task).is_some()) {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.store.get().ok_or_else(|| StoreError::Unavailable("it is being opened again".into()))
    }
}

/// How many of the newest records fit into a size; the newest is always kept, as the present status.
fn fitting(newest_first: &[Record], bytes: u64) -> usize {
    let mut left = bytes;
    let fit = newest_first.iter().take_while(|record| {
        let size = record.body.len() as u64;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    fit.count().max(1)
}

fn most(kind: RecordKind) -> usize {
    match kind {
        RecordKind::Log => MAX_LOG_LINES,
        RecordKind::Status => MAX_STATUSES,
        RecordKind::Journal => MAX_HOOKS,
        // They go with the task, which the model prunes.
        RecordKind::Task => usize::MAX,
    }
}

fn seconds_from(now: Timestamp, seconds: i64) -> Timestamp {
    Timestamp::from_second(now.as_second().saturating_add(seconds)).unwrap_or(now)
}
