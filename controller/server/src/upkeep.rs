//! Nothing grows for ever: logs, status history and journal are pruned by age, number and size, those of a model or a
//! task that is gone are forgotten, and so are charms and content of resources that nobody uses.
//!
//! The store's own list of sequences says what there is to prune. So the records of a removed unit grow old and go
//! as all others, and those of a model that was removed just before a crash are found at the next start.

mod collect;
mod growth;
mod retention;

pub(crate) use growth::Growth;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{ModelUuid, Timestamp};
use periapt_model::RecordKind;
use periapt_store::{Order, Store, StoreError, key};
use tokio_util::sync::CancellationToken;

use self::collect::BlobKind;
use crate::{
    clock::Clock,
    commands::Commands,
    state::{Charms, ControllerState, Durable, Resources},
};

/// How often it is looked whether a model is gone.
const LOOK: Duration = Duration::from_secs(10);
/// How often records are pruned and unused charms looked for, in milliseconds of a clock that is never set.
const INTERVAL_MS: u64 = 600_000;
/// How many names of sequences are held at a time.
const PAGE: usize = 1_000;

/// The one loop that prunes.
pub(crate) struct Upkeep {
    durable: Durable,
    charms: Charms,
    resources: Resources,
    commands: Commands,
    growth: Growth,
    clock: Arc<dyn Clock>,
}

impl Upkeep {
    pub(crate) fn new(state: ControllerState, growth: Growth) -> Self {
        let ControllerState { durable, charms, resources, intake, clock, .. } = state;
        Self { durable, charms, resources, commands: intake.commands, growth, clock }
    }

    /// Prunes now and then until it is told to stop.
    pub(crate) async fn run(self, stop: CancellationToken) {
        let mut known = BTreeSet::new();
        let mut due = 0;
        loop {
            self.durable.state.forget_old();
            // Not broken off: a call of the store that nobody waits for would keep it open.
            for kind in BlobKind::ALL {
                collect::discard_refused(&self, kind).await;
            }
            if let Err(error) = self.round(&mut known, &mut due).await {
                tracing::warn!(%error, "records could not be pruned");
            }
            let look = self.clock.sleep(LOOK);
            tokio::pin!(look);
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = &mut look => break,
                    () = self.growth.grown() => {}
                }
                if let Err(error) = self.prune_grown(self.clock.now()).await {
                    tracing::warn!(%error, "records could not be pruned");
                }
            }
        }
    }

    /// Prunes what has grown past its bound since it was pruned last.
    async fn prune_grown(&self, now: Timestamp) -> Result<(), StoreError> {
        for name in self.growth.names() {
            if let Some((model, kind)) = key::parse_records(&name) {
                // Of a status history its number of lines counts here; what is its share is for the next round.
                self.prune(&*self.store()?, &model, kind, &name, now, 1).await?;
            }
        }
        Ok(())
    }

    async fn round(&self, known: &mut BTreeSet<ModelUuid>, due: &mut u64) -> Result<(), StoreError> {
        let published = self.durable.current();
        let models: BTreeSet<ModelUuid> = published.root.models().map(|(uuid, _)| *uuid).collect();
        for gone in known.difference(&models) {
            self.store()?.forget(&key::records_of_model(gone)).await?;
        }
        *known = models;
        let now = self.clock.monotonic_ms();
        if now < *due {
            return Ok(());
        }
        for kind in BlobKind::ALL {
            collect::forget_unused(self, kind).await;
        }
        self.prune_all(self.clock.now()).await?;
        *due = now.saturating_add(INTERVAL_MS);
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
                    false => {
                        let among = histories.get(&model).copied().unwrap_or(1);
                        self.prune(&*store, &model, kind, &name, now, among).await?;
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

    /// Prunes one sequence of a model that has `histories` status histories.
    async fn prune(
        &self,
        store: &dyn Store,
        model: &ModelUuid,
        kind: RecordKind,
        name: &[u8],
        now: Timestamp,
        histories: u64,
    ) -> Result<(), StoreError> {
        // What is appended from now on counts anew.
        self.growth.pruned(name);
        let judge = match kind {
            RecordKind::Log => retention::log(now),
            RecordKind::Journal => retention::journal(now),
            RecordKind::Status => {
                let published = self.durable.current();
                let state = published.root.model(model);
                let config = state.map(|state| state.config().clone()).unwrap_or_default();
                retention::history(now, &config, histories)
            }
            // They go with the task, which the model prunes.
            RecordKind::Task => {
                return match self.is_of_forgotten_task(store, name).await? {
                    true => store.forget(name).await,
                    false => Ok(()),
                };
            }
        };
        store.prune(name, judge).await.map(drop)
    }

    /// Whether a model of which there are records was removed. One that is not shown yet because it was made this
    /// moment has no record that is older than what is shown.
    async fn is_gone(&self, store: &dyn Store, model: &ModelUuid, name: &[u8]) -> Result<bool, StoreError> {
        let published = self.durable.current();
        if published.root.model(model).is_some() {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    /// Whether a task of which there are records is kept no longer.
    async fn is_of_forgotten_task(&self, store: &dyn Store, name: &[u8]) -> Result<bool, StoreError> {
        let Some((model, task)) = key::parse_task_records(name) else { return Ok(false) };
        let published = self.durable.current();
        if published.root.model(&model).is_some_and(|state| state.task(&task).is_some()) {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        self.durable.store.get().ok_or_else(|| StoreError::Unavailable("it is being opened again".into()))
    }
}
