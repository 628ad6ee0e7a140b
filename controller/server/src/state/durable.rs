//! The durable state: the root that the writer published, and the records in the store.

use std::sync::Arc;

use periapt_host_api::{ErrorCode, Refusal};
use periapt_store::Store;

use crate::{
    published::{Published, Subscription},
    store_slot::StoreSlot,
};

/// The durable state. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Durable {
    /// The states that the writer publishes.
    pub(crate) state: Subscription,
    /// The open store.
    pub(crate) store: StoreSlot,
}

impl Durable {
    /// Returns the current durable state.
    pub(crate) fn current(&self) -> Arc<Published> {
        self.state.current()
    }

    /// Returns the open store, to read records.
    ///
    /// # Errors
    /// The store is being reopened.
    pub(crate) fn records(&self) -> Result<Arc<dyn Store>, Refusal> {
        self.store.get().ok_or_else(|| {
            Refusal::new(ErrorCode::StorageUnavailable, "the store is being opened again; try again later")
        })
    }
}
