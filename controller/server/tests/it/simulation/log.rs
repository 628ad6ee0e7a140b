//! A controller's access to the log in memory, over a line of its own: late, paused, and with calls and answers that get
//! lost.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture, stream::BoxStream};
use parking_lot::Mutex;
use periapt_host_api::{Revision, StoreId};
use periapt_log::{
    Announcement, Content, Entry, Leadership, Log, LogError, LogLeader, MemoryLog, MemoryLogMember,
    StoredEntry, Term,
};
use tokio::{sync::watch, time::sleep};

use super::{
    chance::Chance,
    clock::HostClock,
    witness::{Event, Witness},
};

/// All entries that were ever in the log. It outlives their trimming.
#[derive(Clone)]
pub(super) struct Archive {
    log: MemoryLog,
    entries: Arc<Mutex<BTreeMap<u64, Bytes>>>,
    witness: Witness,
}

impl Archive {
    pub(super) fn of(log: MemoryLog, witness: Witness) -> Self {
        Self { log, entries: Arc::default(), witness }
    }

    /// Returns an access of no host.
    pub(super) fn member(&self) -> MemoryLogMember {
        self.log.member()
    }

    /// Returns the end of the log.
    pub(super) fn end(&self) -> Revision {
        self.log.end()
    }

    /// Returns the bytes of the entries from a position on.
    fn bytes_from(&self, position: Revision) -> u64 {
        self.entries();
        self.entries.lock().range(position.0..).map(|(_, bytes)| bytes.len() as u64).sum()
    }

    /// Returns all entries. Panics if the log has changed one.
    pub(super) fn entries(&self) -> Vec<StoredEntry> {
        let mut entries = self.entries.lock();
        for StoredEntry { position, bytes } in self.log.entries() {
            let kept = entries.entry(position.0).or_insert_with(|| bytes.clone());
            assert_eq!(*kept, bytes, "the entry at {position} is another one than before");
        }
        let stored = |(position, bytes): (&u64, &Bytes)| StoredEntry {
            position: Revision(*position),
            bytes: bytes.clone(),
        };
        entries.iter().map(stored).collect()
    }
}

/// A deliberate defect of a controller's access to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LogDefect {
    None,
    /// The clock is set back at the moment at which the controller begins to lead: the leases that it gives out end soon.
    ShortLeases,
    /// Each term is confirmed, and the log is not asked.
    NoConfirmation,
    /// All entries are trimmed.
    TrimsAll,
}

/// One controller's access to the log. Clones are the same access.
#[derive(Clone)]
pub(super) struct LogAccess {
    inner: MemoryLogMember,
    archive: Archive,
    line: Arc<LogLine>,
    host: &'static str,
    clock: HostClock,
    defect: LogDefect,
}

struct LogLine {
    chance: Mutex<Chance>,
    state: watch::Sender<LogWeather>,
}

/// The state of the line between a controller and the log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LogWeather {
    /// The longest delay of a call, and as much of its answer, in milliseconds.
    pub(super) late_ms: u64,
    /// The longest delay of each entry that is followed, in milliseconds.
    pub(super) lag_ms: u64,
    /// The number of calls that are lost, of 100.
    pub(super) lost_calls: usize,
    /// The number of answers that are lost, of 100: the call has had its effect.
    pub(super) lost_answers: usize,
    /// True while the controller stands still: calls and entries wait, and the lease runs out.
    pub(super) is_paused: bool,
}

impl LogAccess {
    /// Returns the access of the controller on a host with this clock.
    pub(super) fn new(
        archive: Archive,
        (host, clock): (&'static str, HostClock),
        defect: LogDefect,
        chance: Chance,
    ) -> Self {
        let line = LogLine { chance: Mutex::new(chance), state: watch::Sender::default() };
        Self { inner: archive.member(), archive, line: Arc::new(line), host, clock, defect }
    }

    /// Changes the state of the line.
    pub(super) fn set(&self, weather: LogWeather) {
        match weather.is_paused {
            true => self.inner.cut_off(),
            false => self.inner.reconnect(),
        }
        self.line.state.send_replace(weather);
    }

    /// Cuts the controller off: its calls and streams fail.
    pub(super) fn cut_off(&self) {
        self.inner.cut_off();
    }

    async fn call<'a, T>(&'a self, call: BoxFuture<'a, Result<T, LogError>>) -> Result<T, LogError> {
        let lost = || Err(LogError::Unavailable("lost on the way".into()));
        if self.line.pass(|weather| (weather.late_ms, weather.lost_calls)).await {
            return lost();
        }
        let answer = call.await;
        match self.line.pass(|weather| (weather.late_ms, weather.lost_answers)).await {
            true => lost(),
            false => answer,
        }
    }
}

impl LogLine {
    /// Waits as long as something is on its way. Returns true if it is lost.
    async fn pass(&self, of: impl Fn(LogWeather) -> (u64, usize)) -> bool {
        let mut state = self.state.subscribe();
        let weather = *state.wait_for(|weather| !weather.is_paused).await.unwrap();
        let (late, lost) = of(weather);
        let (delay, is_lost) = {
            let mut chance = self.chance.lock();
            (Duration::from_millis(chance.draw() % (late + 1)), chance.below(100) < lost)
        };
        if !delay.is_zero() {
            sleep(delay).await;
            // A controller that stands still sees nothing arrive.
            let _ = state.wait_for(|weather| !weather.is_paused).await;
        }
        is_lost
    }

    fn delayed<T: Send + 'static>(self: &Arc<Self>, stream: BoxStream<'static, T>) -> BoxStream<'static, T> {
        let line = Arc::clone(self);
        stream
            .then(move |item| {
                let line = Arc::clone(&line);
                async move {
                    line.pass(|weather| (weather.lag_ms, 0)).await;
                    item
                }
            })
            .boxed()
    }
}

impl Log for LogAccess {
    fn id(&self) -> StoreId {
        self.inner.id()
    }

    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>> {
        // The log in memory acts when it is called, not when it is awaited.
        async move {
            let begins = self.defect == LogDefect::ShortLeases
                && matches!(Entry::decode(position, &entry), Ok(Entry { content: Content::Term(_), .. }));
            let appended = async move {
                let result = self.inner.append(term, position, entry).await;
                if result.is_ok() {
                    self.archive.witness.note(Event::Appended { host: self.host, term, position });
                }
                result
            };
            self.call(appended.boxed()).await?;
            if begins {
                // The rest of a lease, of 63 s.
                self.clock.dip(Duration::from_secs(59));
            }
            Ok(())
        }
        .boxed()
    }

    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>> {
        let confirmed = async move {
            if self.defect == LogDefect::NoConfirmation {
                return Ok(());
            }
            let result = self.inner.confirm(term).await;
            if result.is_ok() {
                self.archive.witness.note(Event::Confirmed { host: self.host, term });
            }
            result
        };
        self.call(confirmed.boxed()).boxed()
    }

    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>> {
        self.call(async move { self.inner.end().await }.boxed()).boxed()
    }

    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>> {
        self.call(async move { self.inner.read(after, max_bytes).await }.boxed()).boxed()
    }

    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>> {
        self.line.delayed(self.inner.follow(after))
    }

    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>> {
        let trim = async move {
            let through = if self.defect == LogDefect::TrimsAll { self.archive.end() } else { through };
            let bytes = self.archive.bytes_from(through);
            let result = self.inner.trim(term, through).await;
            if result.is_ok() {
                self.archive.witness.trimmed(self.host, through, bytes);
            }
            result
        };
        self.call(trim.boxed()).boxed()
    }

    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>> {
        self.inner.acquire(announcement)
    }

    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
        self.line.delayed(self.inner.leaders())
    }
}
