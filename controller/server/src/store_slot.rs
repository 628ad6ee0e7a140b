//! The slot of the open store.

use std::sync::Arc;

use parking_lot::RwLock;
use periapt_store::Store;

/// The open store, shared by the writer and readers of records. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct StoreSlot(Arc<RwLock<Option<Arc<dyn Store>>>>);

impl StoreSlot {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(RwLock::new(Some(store))))
    }

    /// Returns the store, or none while it is being reopened. A caller must drop it after one call, because the store
    /// cannot be reopened before.
    pub(crate) fn get(&self) -> Option<Arc<dyn Store>> {
        self.0.read().clone()
    }

    pub(crate) fn close(&self) {
        self.set(None);
    }

    pub(crate) fn open(&self, store: Arc<dyn Store>) {
        self.set(Some(store));
    }

    fn set(&self, store: Option<Arc<dyn Store>>) {
        *self.0.write() = store;
    }
}
