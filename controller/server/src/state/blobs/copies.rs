//! The copies of blobs among the controllers of one log. A blob is registered once two controllers have it, and each
//! controller fetches the registered blobs that it lacks. So each registered blob exists when one controller is lost.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use periapt_blobs::BlobError;
use periapt_client::{Client, ClientError};
use periapt_host_api::{Digest, ErrorCode, Refusal};
use periapt_log::{Log, MAX_ENTRY_BYTES, Term};
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{BlobKind, Contents};
use crate::{
    published::Subscription,
    replication::{Links, Members, REPORT_EVERY},
};

/// The most blobs that are fetched from other controllers at a time, and the most copies that are received at a time.
const AT_ONCE: usize = 4;

/// The pause between searches for registered blobs that this controller lacks.
const SEARCH_EVERY: Duration = Duration::from_secs(2);

/// The longest wait until this controller has applied what the log had a moment ago.
const APPLIED_WITHIN: Duration = Duration::from_secs(10);

/// The copies of blobs that other controllers have. Cloning is cheap.
#[derive(Clone, Default)]
pub(crate) struct Copies(Option<Arc<Shared>>);

struct Shared {
    kept: Kept,
    log: Arc<dyn Log>,
    links: Links,
    members: Members,
    state: Subscription,
    began: Instant,
    fetching: Semaphore,
    receiving: Semaphore,
}

/// The place where the controllers of one log keep blobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// On the disk of each.
    ByEach,
    /// In an object store that all reach: no copies are made.
    InSharedStore,
}

/// The reason why a blob was not copied.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Blob(#[from] BlobError),
    #[error("it is larger than {0} bytes")]
    TooLarge(u64),
}

impl Copies {
    /// Returns the copies of the controllers that share a log.
    pub(crate) fn among(
        kept: Kept,
        log: Arc<dyn Log>,
        links: Links,
        members: Members,
        state: Subscription,
    ) -> Self {
        Self(Some(Arc::new(Shared {
            kept,
            log,
            links,
            members,
            state,
            began: Instant::now(),
            fetching: Semaphore::new(AT_ONCE),
            receiving: Semaphore::new(AT_ONCE),
        })))
    }

    /// Returns true if this controller shares its state with others.
    pub(crate) fn are_made(&self) -> bool {
        self.0.is_some()
    }

    /// Gives one other controller a copy of a blob that this one has. Does nothing if no other is known: a controller
    /// that joins fetches all blobs.
    pub(crate) async fn give(&self, contents: &Contents, digest: &Digest) -> Result<(), Refusal> {
        let Some(shared) = self.copying() else { return Ok(()) };
        let mut reason = None;
        for url in shared.others().await {
            match shared.give_to(&url, contents, digest).await {
                Ok(()) => return Ok(()),
                Err(failure) => reason = Some(format!("{url}: {failure}")),
            }
        }
        reason.map_or(Ok(()), |reason| {
            let kind = contents.kind.as_str();
            let text =
                format!("the {kind} was not stored, because no other controller keeps a copy: {reason}");
            Err(Refusal::new(ErrorCode::StorageUnavailable, text))
        })
    }

    /// Waits until one more copy may be received.
    ///
    /// # Errors
    /// This controller shares its state with no other.
    pub(crate) async fn receiving(&self) -> Result<SemaphorePermit<'_>, Refusal> {
        let alone =
            || Refusal::new(ErrorCode::NotSupported, "this controller shares its state with no other");
        // The semaphore is never closed.
        self.0.as_ref().ok_or_else(alone)?.receiving.acquire().await.map_err(|_| alone())
    }

    /// Fetches a blob from another controller, if this one does not have it.
    pub(crate) async fn obtain(&self, contents: &Contents, digest: &Digest) {
        if let Some(shared) = self.copying() {
            shared.has_or_fetches(contents, digest).await;
        }
    }

    fn copying(&self) -> Option<&Arc<Shared>> {
        self.0.as_ref().filter(|shared| shared.kept == Kept::ByEach)
    }

    /// Returns true if this controller leads in a term of which it knows, by asking the log, that no later one has begun.
    pub(crate) async fn confirms(&self, term: Term) -> bool {
        match &self.0 {
            Some(shared) => shared.log.confirm(term).await.is_ok(),
            None => true,
        }
    }

    /// Returns true once this controller has applied all entries that the log had when the call began. A blob that is
    /// not registered then may be deleted.
    pub(crate) async fn is_up_to_date(&self) -> bool {
        let Some(shared) = &self.0 else { return true };
        let published = shared.state.current();
        // If the entries were more than half of this, a large one may have been left out.
        let Ok(entries) = shared.log.read(published.revision(), 2 * MAX_ENTRY_BYTES).await else {
            return false;
        };
        if entries.iter().map(|entry| entry.bytes.len()).sum::<usize>() > MAX_ENTRY_BYTES {
            return false;
        }
        let Some(end) = entries.last().map(|entry| entry.position) else {
            // The log of an etcd that was set back ends before.
            return shared.log.end().await.is_ok_and(|end| end >= published.revision());
        };
        let mut state = shared.state.clone();
        tokio::time::timeout(APPLIED_WITHIN, state.reach(published.store, end)).await.unwrap_or(false)
    }

    /// Fetches the registered blobs that this controller lacks, until it stops.
    pub(crate) async fn keep_up(self, all: Vec<Contents>, stop: CancellationToken) {
        let Some(shared) = self.copying().cloned() else { return stop.cancelled().await };
        tokio::select! {
            () = stop.cancelled() => {}
            () = shared.fetch_all(&all) => {}
        }
        stop.cancelled().await;
    }
}

impl Shared {
    /// Returns the URLs of the other controllers. One that has just started waits for their reports.
    async fn others(&self) -> Vec<String> {
        if self.members.others().is_empty() {
            tokio::time::sleep_until(self.began + REPORT_EVERY * 2).await;
        }
        self.members.others()
    }

    async fn give_to(&self, url: &str, contents: &Contents, digest: &Digest) -> Result<(), CopyError> {
        let (client, kind) = (self.client(url)?, contents.kind.as_str());
        if client.member_keeps(kind, digest).await? {
            return Ok(());
        }
        let pieces = || {
            let (blobs, digest) = (contents.blobs.clone(), *digest);
            stream::once(async move {
                let blob = blobs.get(&digest, None).await?;
                Ok::<_, BlobError>(blob.map_or_else(|| stream::empty().boxed(), |blob| blob.content))
            })
            .try_flatten()
            .map_err(std::io::Error::other)
        };
        Ok(client.give_copy(kind, digest, pieces).await?)
    }

    fn client(&self, url: &str) -> Result<Client, ClientError> {
        self.links.to(url)
    }

    /// Returns true if this controller has a blob, or fetches it from another one.
    async fn has_or_fetches(&self, contents: &Contents, digest: &Digest) -> bool {
        let has = async || matches!(contents.blobs.size(digest).await, Ok(Some(_)));
        if has().await {
            return true;
        }
        // The semaphore is never closed.
        let _fetching = self.fetching.acquire().await;
        if has().await {
            return true;
        }
        for url in self.others().await {
            match self.fetch(&url, contents, digest).await {
                Ok(()) => return true,
                Err(failure) => {
                    tracing::debug!(%failure, %url, kind = contents.kind.as_str(), %digest, "a blob was not fetched");
                }
            }
        }
        false
    }

    async fn fetch(&self, url: &str, contents: &Contents, digest: &Digest) -> Result<(), CopyError> {
        let mut download = self.client(url)?.fetch_copy(contents.kind.as_str(), digest).await?;
        let mut incoming = contents.blobs.begin(*digest).await?;
        let (limit, mut size) = (contents.kind.limit(), 0);
        let received = async {
            while let Some(piece) = download.next().await? {
                size += piece.len() as u64;
                if size > limit {
                    return Err(CopyError::TooLarge(limit));
                }
                incoming.write(piece).await?;
            }
            Ok(())
        };
        if let Err(failure) = received.await {
            incoming.discard().await;
            return Err(failure);
        }
        let _keeping = contents.collector.lock_for_upload().await;
        contents.collector.note_request(digest);
        incoming.finish().await?;
        tracing::info!(kind = contents.kind.as_str(), digest = %digest.short(), "a blob was fetched from another controller");
        Ok(())
    }

    /// Fetches registered blobs that this controller lacks, for ever.
    async fn fetch_all(&self, all: &[Contents]) {
        let mut state = self.state.clone();
        let mut had: BTreeSet<(BlobKind, Digest)> = BTreeSet::new();
        let mut lacked = 0;
        loop {
            let published = state.seen();
            let mut lacks = 0;
            for contents in all {
                let kind = contents.kind;
                let known: BTreeSet<Digest> = kind.known(&published.root).collect();
                had.retain(|(of, digest)| *of != kind || known.contains(digest));
                for digest in known {
                    if had.contains(&(kind, digest)) {
                        continue;
                    }
                    match self.has_or_fetches(contents, &digest).await {
                        true => drop(had.insert((kind, digest))),
                        false => lacks += 1,
                    }
                }
            }
            if lacks > 0 && lacked == 0 {
                tracing::warn!(
                    lacks,
                    "registered blobs are missing here, and no other controller gave them yet"
                );
            }
            lacked = lacks;
            tokio::time::sleep(SEARCH_EVERY).await;
            if lacks == 0 && !state.changed().await {
                return;
            }
        }
    }
}
