//! The log itself.

use std::sync::{Arc, atomic::AtomicI64};

use bytes::Bytes;
use futures_util::{FutureExt as _, TryFutureExt as _, future::BoxFuture, stream::BoxStream};
use periapt_host_api::{Revision, StoreId};
use periapt_log::{Announcement, Leadership, Log, LogError, LogLeader, StoredEntry, Term};

use crate::{
    BegunLog, EtcdOptions, EtcdTuning, OpenError, RemoveError, follow,
    keys::Keys,
    lead, leaders,
    open::{begin, find, is_free, open, reach},
    pool::Pool,
    shared::Shared,
};

/// A log in etcd.
#[derive(Clone)]
pub struct EtcdLog {
    shared: Arc<Shared>,
}

impl EtcdLog {
    /// Opens the log, and makes it if there is none.
    ///
    /// # Errors
    /// [`OpenError`]; nothing was written then.
    pub async fn open(options: &EtcdOptions) -> Result<Self, OpenError> {
        Self::open_tuned(options, EtcdTuning::default()).await
    }

    /// Refuses a place at which controllers have a log.
    ///
    /// # Errors
    /// [`OpenError::Present`], or why etcd cannot be used.
    pub async fn is_free(options: &EtcdOptions) -> Result<(), OpenError> {
        is_free(options, &Keys::new(&options.url.prefix, 0)).await
    }

    /// Makes a log without entries, which begins after a position: that of a restored store, or 0. A log that no controller
    /// has ever led is replaced.
    ///
    /// # Errors
    /// [`OpenError::Present`], or why etcd cannot be used; nothing was written then. If etcd did not answer in time, it may
    /// have made the log.
    pub async fn begin(options: &EtcdOptions, position: Revision) -> Result<(), OpenError> {
        begin(options, &Keys::new(&options.url.prefix, 0), position).await
    }

    /// Removes the log of this identity that a bootstrap has begun, if its controller alone has written into it. That
    /// controller has ended. Other keys below the prefix stay. Does nothing if there is no log.
    ///
    /// # Errors
    /// [`RemoveError::Shared`] if another controller has written there, or why etcd cannot be used. Nothing was removed
    /// then, unless etcd did not answer in time.
    pub async fn remove(options: &EtcdOptions, begun: &BegunLog) -> Result<(), RemoveError> {
        let tuning = EtcdTuning::default();
        let keys = Keys::new(&options.url.prefix, tuning.shard);
        let pool = reach(options).await?;
        Self::of((pool, options.fresh_id), keys, tuning).shared.remove(begun).await
    }

    /// Opens a log that controllers have, and writes nothing.
    ///
    /// # Errors
    /// [`OpenError::Absent`], or why etcd or the log cannot be used.
    pub async fn open_present(options: &EtcdOptions) -> Result<Self, OpenError> {
        let tuning = EtcdTuning::default();
        let keys = Keys::new(&options.url.prefix, tuning.shard);
        let found = find(options, &keys).await?;
        Ok(Self::of(found, keys, tuning))
    }

    /// Opens the log with further options.
    ///
    /// # Errors
    /// See [`Self::open`].
    pub async fn open_tuned(options: &EtcdOptions, tuning: EtcdTuning) -> Result<Self, OpenError> {
        let keys = Keys::new(&options.url.prefix, tuning.shard);
        let opened = open(options, &keys).await?;
        Ok(Self::of(opened, keys, tuning))
    }

    fn of((pool, id): (Pool, StoreId), keys: Keys, tuning: EtcdTuning) -> Self {
        let EtcdTuning { shard: _, timeout, compaction } = tuning;
        let (trimmed_at, compacted_at) = (AtomicI64::new(0), AtomicI64::new(0));
        Self { shared: Arc::new(Shared { id, keys, pool, compaction, trimmed_at, compacted_at, timeout }) }
    }
}

impl std::fmt::Debug for EtcdLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EtcdLog").field("id", &self.shared.id).finish_non_exhaustive()
    }
}

impl Log for EtcdLog {
    fn id(&self) -> StoreId {
        self.shared.id
    }

    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>> {
        self.shared.append(term, position.0, entry).boxed()
    }

    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>> {
        self.shared.confirm(term).boxed()
    }

    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>> {
        self.shared.end().map_ok(Revision).boxed()
    }

    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>> {
        self.shared.read(after.0, max_bytes).boxed()
    }

    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>> {
        follow::follow(Arc::clone(&self.shared), after.0)
    }

    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>> {
        self.shared.trim(term, through.0).boxed()
    }

    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>> {
        lead::acquire(Arc::clone(&self.shared), announcement).boxed()
    }

    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
        leaders::leaders(Arc::clone(&self.shared))
    }
}
