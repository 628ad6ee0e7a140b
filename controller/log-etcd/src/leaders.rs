//! The controller that leads.

use std::sync::Arc;

use etcd_client::{WatchOptions, WatchStream};
use futures_util::{StreamExt as _, stream, stream::BoxStream};
use periapt_log::{LogError, LogLeader};
use tokio::time::{sleep, timeout};

use crate::{
    follow::{PAUSE, QUIET},
    shared::Shared,
    value::decode_leader,
};

/// The leader as it was at one of etcd's revisions.
pub(crate) struct Seen {
    /// The leader, and the lease of its key.
    pub(crate) leader: Option<(LogLeader, i64)>,
    pub(crate) revision: i64,
}

/// The changes of the leader's key. They say that the key must be read again, and nothing more.
#[derive(Default)]
pub(crate) struct Changes(Option<WatchStream>);

struct Watcher {
    shared: Arc<Shared>,
    told: Option<Option<LogLeader>>,
    changes: Changes,
}

/// Returns the leader, and each other one after it.
pub(crate) fn leaders(shared: Arc<Shared>) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
    let watcher = Watcher { shared, told: None, changes: Changes::default() };
    stream::unfold(Some(watcher), |watcher| async move {
        let mut watcher = watcher?;
        match watcher.next().await {
            Ok(leader) => Some((Ok(leader), Some(watcher))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed()
}

impl Watcher {
    async fn next(&mut self) -> Result<Option<LogLeader>, LogError> {
        loop {
            let seen = self.shared.leader().await?;
            let leader = seen.leader.map(|(leader, _)| leader);
            if self.told.as_ref() != Some(&leader) {
                self.told = Some(leader.clone());
                return Ok(leader);
            }
            self.changes.wait(&self.shared, seen.revision).await?;
        }
    }
}

impl Changes {
    /// Waits for a change after a revision of etcd, or until nothing was heard for a while.
    pub(crate) async fn wait(&mut self, shared: &Shared, revision: i64) -> Result<(), LogError> {
        let watch = match &mut self.0 {
            Some(watch) => watch,
            none => {
                let options = WatchOptions::new().with_start_revision(revision.saturating_add(1));
                match shared.watch(shared.keys.leader(), options).await? {
                    Some(watch) => none.insert(watch),
                    None => return Ok(()),
                }
            }
        };
        loop {
            match timeout(QUIET, watch.message()).await {
                Ok(Ok(Some(news))) if news.canceled() => {}
                // The answer to the request to watch has no events.
                Ok(Ok(Some(news))) if news.events().is_empty() => continue,
                Ok(Ok(Some(_))) | Err(_) => return Ok(()),
                Ok(Ok(None) | Err(_)) => {}
            }
            self.0 = None;
            sleep(PAUSE).await;
            return Ok(());
        }
    }
}

impl Shared {
    /// Reads the leader.
    pub(crate) async fn leader(&self) -> Result<Seen, LogError> {
        let found =
            self.call(0, |mut member| async move { member.kv.get(self.keys.leader(), None).await }).await?;
        let revision = found.header().map_or(0, etcd_client::ResponseHeader::revision);
        let leader = match found.kvs().first() {
            Some(found) => Some((decode_leader(found.value())?, found.lease())),
            None => None,
        };
        Ok(Seen { leader, revision })
    }
}
