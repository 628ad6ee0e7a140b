//! Unfinished downloads. After a connection has broken, the beginning of a content stays for a while, and the next attempt
//! fetches the rest. Nothing stays over a restart.

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use periapt_client::PartialFile;
use periapt_host_api::{Digest, ModelUuid};
use tokio::time::{Instant, sleep_until};

use super::{controller::ControllerError, temporary::Temporary};

/// The most beginnings that stay. Each has an open file.
const MAX_KEPT: usize = 8;

/// The most bytes of all beginnings: two of the largest contents.
const MAX_KEPT_BYTES: u64 = 2 << 30;

/// The fewest bytes of a beginning that stays. To fetch less again costs little.
const MIN_KEPT_BYTES: u64 = 64 << 10;

/// The time from the last attempt on for which a beginning stays: far above the pauses between attempts.
const KEPT_FOR: Duration = Duration::from_secs(60 * 60);

/// A content that is fetched. Each model fetches its own: the controller checks for each who may have a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DownloadKey {
    /// A charm's archive.
    Charm(Digest),
    /// The content of a resource of a model.
    Resource(ModelUuid, Digest),
}

/// The unfinished downloads of an agent.
#[derive(Debug)]
pub(crate) struct Downloads {
    /// The directory of the files.
    directory: PathBuf,
    /// The number of the next file.
    sequence: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    kept: BTreeMap<DownloadKey, Kept>,
    /// True while a task removes beginnings that become old.
    is_swept: bool,
}

/// The beginning of a content, of which no attempt is under way.
#[derive(Debug)]
struct Kept {
    parts: Parts,
    until: Instant,
}

/// A content so far. Its file goes with it.
#[derive(Debug)]
struct Parts {
    content: PartialFile,
    file: Temporary,
}

/// A download that is under way. Dropping it leaves the beginning for the next attempt.
#[derive(Debug)]
pub(crate) struct ContinuedDownload {
    key: DownloadKey,
    /// The content; none at the end.
    parts: Option<Parts>,
    downloads: Arc<Downloads>,
}

impl Downloads {
    /// Creates an empty set, whose files are in a directory.
    pub(super) fn in_directory(directory: PathBuf) -> Arc<Self> {
        Arc::new(Self { directory, sequence: AtomicU64::new(0), state: Mutex::default() })
    }

    /// Begins to fetch a content, or goes on where the last attempt ended. The caller makes one attempt at a time for each
    /// content.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(super) async fn begin(
        self: &Arc<Self>,
        key: DownloadKey,
    ) -> Result<ContinuedDownload, ControllerError> {
        let kept = self.state.lock().kept.remove(&key);
        let parts = match kept {
            Some(Kept { parts, .. }) => {
                tracing::info!(?key, bytes = parts.content.length(), "an interrupted download goes on");
                parts
            }
            None => {
                let number = self.sequence.fetch_add(1, Ordering::Relaxed);
                let file = Temporary::new(self.directory.join(format!("{number}.download")));
                let created = tokio::fs::File::create_new(file.path()).await;
                let created = created.map_err(|error| unusable(&file, &error))?;
                Parts { content: PartialFile::empty(created), file }
            }
        };
        Ok(ContinuedDownload { key, parts: Some(parts), downloads: Arc::clone(self) })
    }

    /// Removes the beginnings of contents that nothing needs any more.
    pub(super) fn retain(&self, is_needed: impl Fn(&DownloadKey) -> bool) {
        let mut state = self.state.lock();
        let others: Vec<_> = state.kept.keys().filter(|key| !is_needed(key)).copied().collect();
        let removed: Vec<_> = others.iter().filter_map(|key| state.kept.remove(key)).collect();
        // Files are removed without the lock.
        drop(state);
        drop(removed);
    }

    fn keep(self: &Arc<Self>, key: DownloadKey, parts: Parts) {
        // Without a runtime nothing would remove it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = self.state.lock();
        let mut removed: Vec<_> =
            state.kept.insert(key, Kept { parts, until: Instant::now() + KEPT_FOR }).into_iter().collect();
        while state.kept.len() > MAX_KEPT || state.bytes() > MAX_KEPT_BYTES {
            let oldest = state.kept.iter().min_by_key(|(_, kept)| kept.until).map(|(key, _)| *key);
            removed.extend(oldest.and_then(|oldest| state.kept.remove(&oldest)));
        }
        if !state.is_swept && !state.kept.is_empty() {
            state.is_swept = true;
            runtime.spawn(sweep(Arc::downgrade(self)));
        }
        drop(state);
        drop(removed);
    }

    /// Removes beginnings that are old. Returns the time at which the next one is; none if there is no other.
    fn remove_old(&self) -> Option<Instant> {
        let (mut state, now) = (self.state.lock(), Instant::now());
        let old = state.kept.iter().filter(|(_, kept)| kept.until <= now).map(|(key, _)| *key);
        let old: Vec<_> = old.collect();
        let removed: Vec<_> = old.iter().filter_map(|key| state.kept.remove(key)).collect();
        let next = state.kept.values().map(|kept| kept.until).min();
        state.is_swept = next.is_some();
        drop(state);
        drop(removed);
        next
    }
}

impl State {
    fn bytes(&self) -> u64 {
        self.kept.values().map(|kept| kept.parts.content.length()).sum()
    }
}

/// Removes beginnings that become old, until there are none.
async fn sweep(downloads: Weak<Downloads>) {
    while let Some(next) = downloads.upgrade().and_then(|downloads| downloads.remove_old()) {
        sleep_until(next).await;
    }
}

impl ContinuedDownload {
    /// Returns the content so far.
    #[expect(clippy::expect_used, reason = "the content is there until the value is consumed or dropped")]
    pub(super) fn content(&mut self) -> &mut PartialFile {
        &mut self.parts.as_mut().expect("the content of a download").content
    }

    /// Ends the download of a whole content, which is durable then. Returns its file.
    ///
    /// # Errors
    /// The file cannot be written.
    #[expect(clippy::expect_used, reason = "the content is there until the value is consumed or dropped")]
    pub(super) async fn end(mut self) -> Result<Temporary, ControllerError> {
        let Parts { mut content, file } = self.parts.take().expect("the content of a download");
        content.sync().await.map_err(|error| unusable(&file, &error))?;
        Ok(file)
    }
}

impl Drop for ContinuedDownload {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take()
            && parts.content.length() >= MIN_KEPT_BYTES
        {
            self.downloads.keep(self.key, parts);
        }
    }
}

fn unusable(file: &Temporary, error: &io::Error) -> ControllerError {
    ControllerError::Unusable(format!("{}: {error}", file.path().display()))
}

#[cfg(test)]
mod tests;
