//! Following a log.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use etcd_client::{EventType, WatchFilterType, WatchOptions, WatchStream};
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use periapt_log::{LogError, StoredEntry};
use tokio::time::{sleep, timeout};

use crate::{read::SAFE_PAGE, shared::Shared};

/// The time without news after which the log is read. So a member of etcd that has stopped, or a watch that etcd has
/// forgotten, delays an entry by no more.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

/// The pause before a watch that broke is opened again.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);

/// A follower of the log.
struct Follower {
    shared: Arc<Shared>,
    /// The last position that was read.
    last: u64,
    /// The entries that were read and not yet handed out.
    read: VecDeque<StoredEntry>,
    watch: Option<WatchStream>,
    page: usize,
}

/// Returns all entries after a position.
pub(crate) fn follow(shared: Arc<Shared>, after: u64) -> BoxStream<'static, Result<StoredEntry, LogError>> {
    let follower = Follower { shared, last: after, read: VecDeque::new(), watch: None, page: SAFE_PAGE };
    stream::unfold(Some(follower), |follower| async move {
        let mut follower = follower?;
        match follower.next().await {
            Ok(entry) => Some((Ok(entry), Some(follower))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

impl Follower {
    async fn next(&mut self) -> Result<StoredEntry, LogError> {
        loop {
            if let Some(entry) = self.read.pop_front() {
                return Ok(entry);
            }
            let Some(watch) = &mut self.watch else {
                if let Some(revision) = self.read_on().await? {
                    self.watch = self.open_watch(revision.saturating_add(1)).await?;
                }
                continue;
            };
            match timeout(QUIET, watch.message()).await {
                // Entries that are read here did not come by the watch in time: it is opened again, behind them.
                Err(_) => {
                    if self.read_on().await?.is_none() {
                        self.watch = None;
                    }
                }
                Ok(Ok(Some(news))) if !news.canceled() => self.take(news.events()).await?,
                // The watch broke, or its history was compacted.
                Ok(_) => {
                    self.watch = None;
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Reads a page. Returns etcd's revision if there is no entry behind the last position.
    async fn read_on(&mut self) -> Result<Option<i64>, LogError> {
        let page = self.shared.page(self.last, self.page).await?;
        self.page = page.next;
        match page.entries.last() {
            Some(last) => self.last = last.position.0,
            None => return Ok(Some(page.revision)),
        }
        self.read.extend(page.entries);
        Ok(None)
    }

    /// Takes the entries that a watch shows. After a gap the log is read instead.
    async fn take(&mut self, events: &[etcd_client::Event]) -> Result<(), LogError> {
        for event in events {
            let Some(found) = event.kv().filter(|_| event.event_type() == EventType::Put) else {
                continue;
            };
            match self.shared.keys.position(found.key()) {
                Some(position) if position <= self.last => {}
                Some(position) if position == self.last.saturating_add(1) => {
                    let entry = self.shared.entry(position, found.clone()).await?;
                    self.last = position;
                    self.read.push_back(entry);
                }
                _ => {
                    self.watch = None;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn open_watch(&self, revision: i64) -> Result<Option<WatchStream>, LogError> {
        let watched = WatchOptions::new()
            .with_range(self.shared.keys.behind_entries())
            .with_start_revision(revision)
            .with_filters([WatchFilterType::NoDelete])
            .with_fragment();
        self.shared.watch(self.shared.keys.entry(0), watched).await
    }
}
