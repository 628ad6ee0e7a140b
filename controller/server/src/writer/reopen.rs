//! The recovery from a failed sync: the contents of the disk are unknown, so the store is closed, opened and read
//! again before the next write.

use std::{sync::Arc, time::Duration};

use periapt_host_api::{ErrorCode, Refusal, StoreId};
use periapt_model::Root;
use periapt_store::{Store, StoreError, codec};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    BATCH_BYTES, BATCH_COUNT, Writer,
    commands::{CommandAnswer, Outcome},
};
use crate::{
    metrics::metrics,
    published::{Changed, Published, Weight},
};

/// The pause before the first attempt. Each failed attempt doubles it...
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// ... up to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Writer {
    /// Reopens the store, with repeated attempts, and refuses commands meanwhile. Reads go on from the last durable
    /// state. Returns false if the controller stops.
    pub(crate) async fn reopen(&self, mut failure: StoreError, stop: &CancellationToken) -> bool {
        self.store.close();
        let mut pause = FIRST_PAUSE;
        loop {
            self.say(unwritable(&failure));
            let refusing = self.refuse_for(pause, &failure);
            tokio::select! {
                () = stop.cancelled() => return false,
                () = refusing => {}
            }
            match load(&*self.opener, &*self.clock, self.publisher.current().store).await {
                Ok(loaded) => {
                    self.store.open(loaded.store);
                    self.publisher.publish(loaded.published, Weight::default());
                    metrics().store_opened.inc(&[]);
                    tracing::info!("the store was opened again");
                    return true;
                }
                Err(error) => failure = error,
            }
            tracing::error!(error = %failure, "the store cannot be opened again");
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    /// Refuses all commands for a while.
    async fn refuse_for(&self, pause: Duration, failure: &StoreError) {
        let message = format!("{failure}; it is being opened again, and the request had no effect");
        let refusal = Refusal::new(ErrorCode::StorageUnavailable, message);
        let refuse = async {
            loop {
                for job in self.queue.take(BATCH_BYTES, BATCH_COUNT).await {
                    let revision = self.publisher.current().revision();
                    job.pending
                        .answer(CommandAnswer { result: Err(refusal.clone()), revision }, Outcome::Failed);
                }
            }
        };
        // The loop ends only by the timeout.
        let _: Result<(), _> = tokio::time::timeout(pause, refuse).await;
    }

    /// Publishes for `status` and `show-controller` why nothing can be written.
    pub(crate) fn say(&self, problem: String) {
        let (problem, current, since) = (Some(problem), self.publisher.current(), Instant::now());
        self.publisher.publish(Published { problem, since, ..Published::clone(&current) }, Weight::default());
    }
}

/// Returns the problem of a store that failed.
pub(crate) fn unwritable(failure: &dyn std::fmt::Display) -> String {
    format!("the store cannot be written: {failure}")
}

/// An opened store, with its state.
pub(crate) struct LoadedStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) published: Published,
    /// The end of the log that the store is fed from, in stored form; none for a store without one.
    pub(crate) note: Option<Vec<u8>>,
}

/// Opens a store and reads its state.
pub(crate) async fn load(
    opener: &dyn crate::options::OpenStore,
    clock: &dyn crate::clock::Clock,
    fresh: StoreId,
) -> Result<LoadedStore, StoreError> {
    read(opener.open(fresh).await?, clock).await
}

/// Reads the state of an open store.
pub(crate) async fn read(
    store: Arc<dyn Store>,
    clock: &dyn crate::clock::Clock,
) -> Result<LoadedStore, StoreError> {
    let mut loaded = store.load().await?;
    let (revision, note) = (loaded.revision, loaded.note.take());
    let damaged = |error: &dyn std::error::Error| StoreError::Damaged(error.to_string());
    let entities = codec::entities(loaded).map_err(|error| damaged(&error))?;
    let root = Root::from_entities(entities, revision).map_err(|error| damaged(&error))?;
    let root = root.restart(clock.now(), clock.monotonic_ms());
    let published = Published {
        root,
        store: store.id(),
        changed: Changed::at_start(revision),
        problem: None,
        since: Instant::now(),
    };
    Ok(LoadedStore { store, published, note })
}
