//! The tasks of units, which end with the runner.

use std::{future::Future, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::task::{AbortHandle, JoinSet};

use super::Units;

/// The tasks of active units.
#[derive(Default)]
pub(super) struct Work(Mutex<JoinSet<()>>);

impl Work {
    /// Aborts all tasks.
    pub(super) fn abandon(&self) {
        self.0.lock().abort_all();
    }

    /// Returns the number of tasks.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        let mut tasks = self.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.len()
    }
}

impl Units {
    /// Starts a task. A panic in it ends the runner.
    pub(super) fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let units = Arc::clone(self);
        let mut tasks = self.work.0.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            if AssertUnwindSafe(work).catch_unwind().await.is_err() {
                units.panicked();
            }
        })
    }
}
