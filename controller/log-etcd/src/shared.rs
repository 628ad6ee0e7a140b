//! The parts of a log that its tasks and streams share.

use std::{sync::atomic::AtomicI64, time::Duration};

use etcd_client::{Error, WatchOptions, WatchStream};
use periapt_host_api::StoreId;
use periapt_log::LogError;

use crate::{Compaction, connect::Member, failure::Failure, keys::Keys, pool::Pool};

/// The bytes that a call may carry for each second that it has beyond its timeout.
const BYTES_A_SECOND: usize = 1 << 20;

/// The parts of a log that its tasks and streams share.
pub(crate) struct Shared {
    pub(crate) id: StoreId,
    pub(crate) keys: Keys,
    pub(crate) pool: Pool,
    pub(crate) compaction: Compaction,
    /// etcd's revision after the last trimming, and that of the last compaction.
    pub(crate) trimmed_at: AtomicI64,
    pub(crate) compacted_at: AtomicI64,
    /// The timeout of a call that carries little.
    pub(crate) timeout: Duration,
}

impl Shared {
    /// Makes a call that carries some bytes.
    pub(crate) async fn call<T, F>(&self, bytes: usize, call: impl Fn(Member) -> F) -> Result<T, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let more = u64::try_from(bytes / BYTES_A_SECOND).unwrap_or(u64::MAX);
        self.pool.call(self.timeout.saturating_add(Duration::from_secs(more)), call).await
    }

    /// Opens a watch; none if its history was compacted.
    pub(crate) async fn watch(
        &self,
        key: String,
        options: WatchOptions,
    ) -> Result<Option<WatchStream>, LogError> {
        let watch = |mut member: Member| {
            let (key, options) = (key.clone(), options.clone());
            async move { member.watch.watch(key, Some(options)).await }
        };
        match self.call(0, watch).await {
            Ok(watch) => Ok(Some(watch)),
            Err(Failure::Compacted) => Ok(None),
            Err(failure) => Err(failure.into()),
        }
    }
}
