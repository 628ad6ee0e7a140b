//! A store that records the batches written to it.

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, future::BoxFuture};
use parking_lot::Mutex;
use periapt_controller::OpenStore;
use periapt_host_api::{Revision, StoreId};
use periapt_store::{Batch, Order, Record, RetentionPolicy, Store, StoreError, StoredEntity, StoredState};
use periapt_store_rocksdb::RocksStore;

/// The batches committed since [`Batches::record`]; none are kept before the first call.
#[derive(Clone, Default)]
pub(crate) struct Batches(Arc<Mutex<Option<Vec<Batch>>>>);

impl Batches {
    /// Clears the record and starts recording.
    pub(crate) fn record(&self) {
        *self.0.lock() = Some(Vec::new());
    }

    /// Returns the recorded batches and stops recording.
    pub(crate) fn take(&self) -> Vec<Batch> {
        self.0.lock().take().unwrap_or_default()
    }

    fn add(&self, batch: &Batch) {
        if let Some(batches) = &mut *self.0.lock() {
            batches.push(batch.clone());
        }
    }
}

/// A factory of recording RocksDB stores in a directory.
pub(crate) struct Recorded {
    pub(crate) directory: PathBuf,
    pub(crate) batches: Batches,
}

impl OpenStore for Recorded {
    fn open(&self, fresh: StoreId) -> BoxFuture<'_, Result<Arc<dyn Store>, StoreError>> {
        async move {
            let store = RocksStore::open(&self.directory, fresh).await?;
            Ok(Arc::new(RecordedStore { store, batches: self.batches.clone() }) as Arc<dyn Store>)
        }
        .boxed()
    }
}

struct RecordedStore {
    store: RocksStore,
    batches: Batches,
}

impl Store for RecordedStore {
    fn id(&self) -> StoreId {
        self.store.id()
    }

    fn load(&self) -> BoxFuture<'_, Result<StoredState, StoreError>> {
        self.store.load()
    }

    fn commit(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.batches.add(&batch);
        self.store.commit(batch)
    }

    fn apply(&self, batch: Batch) -> BoxFuture<'_, Result<Revision, StoreError>> {
        self.store.apply(batch)
    }

    fn sync(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.sync()
    }

    fn unstage(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.unstage()
    }

    fn stage(&self, entities: Vec<StoredEntity>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.stage(entities)
    }

    fn replace_by_staged(
        &self,
        revision: Revision,
        note: Option<Vec<u8>>,
    ) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.replace_by_staged(revision, note)
    }

    fn import(&self, sequence: &[u8], records: Vec<Record>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.import(sequence, records)
    }

    fn records(
        &self,
        prefix: &[u8],
        order: Order,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Record>, StoreError>> {
        self.store.records(prefix, order, limit)
    }

    fn sequences(
        &self,
        after: Option<&[u8]>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Vec<u8>>, StoreError>> {
        self.store.sequences(after, limit)
    }

    fn prune(&self, prefix: &[u8], policy: RetentionPolicy) -> BoxFuture<'_, Result<usize, StoreError>> {
        self.store.prune(prefix, policy)
    }

    fn forget(&self, prefix: &[u8]) -> BoxFuture<'_, Result<(), StoreError>> {
        self.store.forget(prefix)
    }

    fn size(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.store.size()
    }

    fn sync_time(&self) -> Option<Duration> {
        self.store.sync_time()
    }
}
