//! What is under way for units: tasks that end with the runner.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex},
};

use futures_util::FutureExt as _;
use tokio::task::{AbortHandle, JoinSet};

use super::{Units, lock};

/// The tasks of units that are not at rest.
#[derive(Default)]
pub(super) struct Work(Mutex<JoinSet<()>>);

impl Work {
    /// Ends all.
    pub(super) fn abandon(&self) {
        lock(&self.0).abort_all();
    }

    /// How many are under way.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let mut tasks = lock(&self.0);
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }
}

impl Units {
    /// Does something on the side. A panic in it ends the runner.
    pub(super) fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let units = Arc::clone(self);
        let mut tasks = lock(&self.work.0);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                units.panicked();
            }
        })
    }
}
