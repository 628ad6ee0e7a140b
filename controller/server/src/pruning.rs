//! The pruning of logs, status history and journal by age, number and size. It also deletes the records of removed
//! models and tasks, and unused charms and content of resources.
//!
//! The store's own list of sequences drives it. So the records of a removed unit age as all others, and those of a
//! model that was removed just before a crash are found at the next start.

mod collect;
mod growth;
mod retention;

pub(crate) use growth::SequenceGrowth;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use periapt_host_api::{ModelUuid, Timestamp};
use periapt_model::RecordKind;
use periapt_store::{Order, Store, StoreError, key};
use tokio_util::sync::CancellationToken;

use crate::{
    clock::Clock,
    replication::RoleReceiver,
    state::{BlobKind, Charms, ControllerState, Durable, Resources},
    writer::Commands,
};

/// The interval between checks for removed models.
const LOOK: Duration = Duration::from_secs(10);
/// The interval between prunings of records and searches for unused charms, in milliseconds of the monotonic clock.
const INTERVAL_MS: u64 = 600_000;
/// The most names of sequences in one read.
const PAGE: usize = 1_000;

/// The loop that prunes.
pub(crate) struct Pruner {
    durable: Durable,
    charms: Charms,
    resources: Resources,
    commands: Commands,
    growth: SequenceGrowth,
    role: RoleReceiver,
    clock: Arc<dyn Clock>,
    /// Cancelled when the controller stops. Then no further call of the store begins: a round over all sequences takes
    /// seconds, and the controller that takes over waits for the end of this one.
    stop: CancellationToken,
}

impl Pruner {
    pub(crate) fn new(state: &ControllerState, growth: SequenceGrowth, stop: CancellationToken) -> Self {
        Self {
            durable: state.durable.clone(),
            charms: state.charms.clone(),
            resources: state.resources.clone(),
            commands: state.submission.commands.clone(),
            growth,
            role: state.role.clone(),
            clock: Arc::clone(&state.clock),
            stop,
        }
    }

    /// Prunes at intervals until the controller stops.
    pub(crate) async fn run(self) {
        // The store may have records of a model that was removed while this controller was away.
        let mut known = None;
        let mut due = 0;
        loop {
            self.durable.state.forget_old();
            // No call is cancelled, because a pending call of the store would keep the store open.
            for kind in BlobKind::ALL {
                collect::discard_refused(&self, kind).await;
            }
            if let Err(error) = self.round(&mut known, &mut due).await {
                self.note(&error);
            }
            let look = self.clock.sleep(LOOK);
            tokio::pin!(look);
            loop {
                tokio::select! {
                    () = self.stop.cancelled() => return,
                    () = &mut look => break,
                    () = self.growth.grown() => {}
                }
                if let Err(error) = self.prune_grown(self.clock.now()).await {
                    self.note(&error);
                }
            }
        }
    }

    fn note(&self, error: &StoreError) {
        if !self.stop.is_cancelled() {
            tracing::warn!(%error, "records could not be pruned");
        }
    }

    /// Prunes the sequences that have exceeded their bounds since the last pruning.
    async fn prune_grown(&self, now: Timestamp) -> Result<(), StoreError> {
        for name in self.growth.names() {
            if let Some((model, kind)) = key::parse_records(&name) {
                // A status history is only pruned by its number of entries here; the next round applies its share of
                // bytes.
                self.prune(&*self.store()?, &model, kind, &name, now, 1).await?;
            }
        }
        Ok(())
    }

    async fn round(&self, known: &mut Option<BTreeSet<ModelUuid>>, due: &mut u64) -> Result<(), StoreError> {
        let published = self.durable.current();
        let coming = published.root.migrating_models().filter(|(_, state)| state.is_coming());
        let models: BTreeSet<ModelUuid> =
            published.root.models().chain(coming).map(|(uuid, _)| *uuid).collect();
        let gone = match known {
            Some(before) => before.difference(&models).copied().collect(),
            None => self.gone_models().await?,
        };
        for gone in gone {
            // It may have begun to come since.
            let published = self.durable.current();
            let known = published.root.model_or_remains(&gone);
            if known.is_none_or(|state| state.is_hidden() && !state.is_coming()) {
                self.forget_records(&*self.store()?, &gone).await?;
            }
        }
        *known = Some(models);
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

    /// Returns the models that have records in the store, and are not there any more.
    async fn gone_models(&self) -> Result<BTreeSet<ModelUuid>, StoreError> {
        let (mut gone, mut after) = (BTreeSet::new(), None::<Vec<u8>>);
        loop {
            let names = self.store()?.sequences(after.as_deref(), PAGE).await?;
            let Some(last) = names.last() else { return Ok(gone) };
            after = Some(last.clone());
            for name in names {
                let Some((model, _)) = key::parse_records(&name) else { continue };
                let store = self.store()?;
                if !gone.contains(&model) && self.is_gone(&*store, &model, &name).await? {
                    gone.insert(model);
                }
            }
        }
    }

    /// Deletes all records of a model that is gone.
    async fn forget_records(&self, store: &dyn Store, model: &ModelUuid) -> Result<(), StoreError> {
        let records = key::records_of_model(model);
        store.forget(&records).await?;
        self.growth.forgotten(&records);
        Ok(())
    }

    /// Prunes all sequences in the store.
    async fn prune_all(&self, now: Timestamp) -> Result<(), StoreError> {
        let histories = self.count_histories().await?;
        let mut after: Option<Vec<u8>> = None;
        loop {
            let names = self.store()?.sequences(after.as_deref(), PAGE).await?;
            let Some(last) = names.last() else { return Ok(()) };
            after = Some(last.clone());
            for name in names {
                if name == key::AUDIT {
                    self.store()?.prune(&name, retention::audit(now)).await?;
                    continue;
                }
                let Some((model, kind)) = key::parse_records(&name) else {
                    tracing::warn!(name = %name.escape_ascii(), "records of an unknown kind are left alone");
                    continue;
                };
                // The store is fetched for each sequence, so that it can be closed in between.
                let store = self.store()?;
                match self.is_gone(&*store, &model, &name).await? {
                    true => self.forget_records(&*store, &model).await?,
                    false => {
                        let among = histories.get(&model).copied().unwrap_or(1);
                        self.prune(&*store, &model, kind, &name, now, among).await?;
                    }
                }
            }
        }
    }

    /// Returns the number of status histories of each model.
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
        // The history of a model that migrates is being carried, page by page.
        if self.durable.current().root.model_or_remains(model).is_some_and(|state| state.is_frozen()) {
            return Ok(());
        }
        // Records that are appended from now on count anew.
        self.growth.pruned(name);
        let policy = match kind {
            RecordKind::Log => retention::log(now),
            RecordKind::Journal => retention::journal(now),
            RecordKind::Status => {
                let published = self.durable.current();
                let state = published.root.model(model);
                let config = state.map(|state| state.config().clone()).unwrap_or_default();
                retention::history(now, &config, histories)
            }
            RecordKind::Audit => retention::audit(now),
            // These are deleted with the task, which the model prunes.
            RecordKind::Task => {
                return match self.is_of_forgotten_task(store, name).await? {
                    true => store.forget(name).await,
                    false => Ok(()),
                };
            }
        };
        store.prune(name, policy).await.map(drop)
    }

    /// Returns true if the model of some records was removed. A model that was created just now and is not published
    /// yet has only records that are newer than the published state.
    async fn is_gone(&self, store: &dyn Store, model: &ModelUuid, name: &[u8]) -> Result<bool, StoreError> {
        let published = self.durable.current();
        let known = published.root.model_or_remains(model);
        if known.is_some_and(|state| !state.is_hidden() || state.is_coming()) {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    /// Returns true if the task of some records was pruned.
    async fn is_of_forgotten_task(&self, store: &dyn Store, name: &[u8]) -> Result<bool, StoreError> {
        let Some((model, task)) = key::parse_task_records(name) else { return Ok(false) };
        let published = self.durable.current();
        if published.root.model(&model).is_some_and(|state| state.task(&task).is_some()) {
            return Ok(false);
        }
        let oldest = store.records(name, Order::OldestFirst { after: None }, 1).await?;
        Ok(oldest.first().is_some_and(|record| record.position.revision <= published.revision()))
    }

    /// Returns the store.
    ///
    /// # Errors
    /// It is being opened again, or the controller stops.
    fn store(&self) -> Result<Arc<dyn Store>, StoreError> {
        if self.stop.is_cancelled() {
            return Err(StoreError::Unavailable("the controller stops".into()));
        }
        self.durable.store.get().ok_or_else(|| StoreError::Unavailable("it is being opened again".into()))
    }
}
