//! The in-memory store passes the suite of stores.

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, ready},
};
use periapt_host_api::StoreId;
use periapt_store::{MemoryStore, suite};

struct InMemory;

impl suite::TestedStore for InMemory {
    type Store = MemoryStore;

    fn open(&mut self) -> BoxFuture<'_, MemoryStore> {
        ready(MemoryStore::new(StoreId(uuid::Uuid::from_u128(7)))).boxed()
    }

    fn is_durable(&self) -> bool {
        false
    }
}

#[test]
fn passes_the_suite_of_stores() {
    suite::run(InMemory).now_or_never().unwrap();
}
