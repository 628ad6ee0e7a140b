//! Where the open store is found, if there is one.

use std::sync::{Arc, PoisonError, RwLock};

use periapt_store::Store;

/// The open store, for the writer and for readers of records. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct StoreSlot(Arc<RwLock<Option<Arc<dyn Store>>>>);

impl StoreSlot {
    pub(crate) fn new(store: Arc<dyn Store>) -> Self {
        Self(Arc::new(RwLock::new(Some(store))))
    }

    /// The store; none while it is being opened again. Who holds it keeps it from being opened again: not for
    /// longer than one call.
    pub(crate) fn get(&self) -> Option<Arc<dyn Store>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn close(&self) {
        self.set(None);
    }

    pub(crate) fn open(&self, store: Arc<dyn Store>) {
        self.set(Some(store));
    }

    fn set(&self, store: Option<Arc<dyn Store>>) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = store;
    }
}
