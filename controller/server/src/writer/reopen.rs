//! The recovery from a failed sync: the contents of the disk are unknown, so the store is closed, opened and read
//! again before the next write.

use std::{sync::Arc, time::Duration};

use futures_util::TryStreamExt as _;
use periapt_host_api::{ErrorCode, Refusal, StoreId};
use periapt_model::RootBuilder;
use periapt_store::{Store, StoreError, StoredState, codec};
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

/// Reads the state of an open store. The state is built while chunks come, so no more than some of them are in memory in
/// stored form.
pub(crate) async fn read(
    store: Arc<dyn Store>,
    clock: &dyn crate::clock::Clock,
) -> Result<LoadedStore, StoreError> {
    let StoredState { revision, note, mut chunks } = store.load().await?;
    let mut builder = RootBuilder::default();
    while let Some(chunk) = chunks.try_next().await? {
        for (key, entity) in codec::entities(chunk).map_err(damaged)? {
            builder.add(key, entity).map_err(damaged)?;
        }
    }
    let root = builder.finish(revision).map_err(damaged)?;
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

/// Returns the error of a store whose entities make no state.
fn damaged(error: impl std::error::Error) -> StoreError {
    StoreError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use periapt_host_api::{Digest, Revision, Timestamp};
    use periapt_model::{
        changes::Changes,
        entity::{Entity, EntityKey, ResourceContent, Uploaders},
    };
    use periapt_store::{Batch, MAX_CHUNK_ENTITIES, MemoryStore};

    use super::*;
    use crate::clock::SystemClock;

    /// The number of entities in the store: some chunks.
    const COUNT: usize = 3 * MAX_CHUNK_ENTITIES;

    async fn filled() -> MemoryStore {
        let content = |number: usize| {
            let content = ResourceContent {
                digest: Digest::of(number.to_string().as_bytes()),
                size: 1,
                uploaded_at: Timestamp::UNIX_EPOCH,
                uploaders: Uploaders::default(),
                image: None,
                parts: None,
            };
            (EntityKey::ResourceContent(content.digest), Some(Entity::from(content)))
        };
        let changes = Changes { puts: (0..COUNT).map(content).collect(), ..Changes::default() };
        let store = MemoryStore::new(StoreId(uuid::Uuid::from_u128(7)));
        let writes = codec::Writes::of(&changes).unwrap();
        store.commit(codec::batch(Revision(0), [writes])).await.unwrap();
        store
    }

    #[tokio::test]
    async fn all_chunks_make_one_state() {
        let loaded = read(Arc::new(filled().await), &SystemClock::default()).await.unwrap();
        assert_eq!(loaded.published.root.revision(), Revision(1));
        assert_eq!(loaded.published.root.resource_contents().count(), COUNT);
    }

    #[tokio::test]
    async fn a_damaged_value_in_a_later_chunk_is_named_by_its_key() {
        let store = filled().await;
        let entities = store.load().await.unwrap().whole().await.unwrap().entities;
        let (key, _) = entities.into_iter().nth(2 * MAX_CHUNK_ENTITIES + 7).unwrap();
        let name = String::from_utf8(key.clone()).unwrap();
        for (value, problem) in [
            (&b"\x01no JSON"[..], "cannot be read: expected"),
            (&b"\x02"[..], "is stored in form 2, this program knows up to 1"),
            (&b""[..], "does not belong where it stands"),
        ] {
            let expected = store.load().await.unwrap().revision;
            let entities = vec![(key.clone(), Some(value.to_vec()))];
            store.commit(Batch { expected, entities, ..Batch::default() }).await.unwrap();
            let error =
                read(Arc::new(store.copy()), &SystemClock::default()).await.err().unwrap().to_string();
            let expected = format!("the store is damaged: {name} {problem}");
            assert!(error.starts_with(&expected), "{error}\nshould begin with {expected}");
        }
    }
}
