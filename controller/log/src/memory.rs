//! An in-memory log, for tests and simulation. Each member can be cut off from it.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{
    FutureExt as _, StreamExt as _,
    future::{BoxFuture, ready},
    stream::{self, BoxStream},
};
use parking_lot::Mutex;
use periapt_host_api::{Revision, StoreId};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::{
    Announcement, LEADERSHIP_TTL, Leadership, Log, LogError, LogLeader, LogState, StoredEntry, Term,
};

/// The interval of renewals: several attempts fit into the time of a leadership.
const RENEW_EVERY: std::time::Duration = LEADERSHIP_TTL.checked_div(4).expect("four is not zero");

/// A log in memory. It outlives its members.
#[derive(Debug, Clone)]
pub struct MemoryLog {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    id: StoreId,
    state: Mutex<State>,
    /// The number of changes, for those who wait for one.
    changed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    log: LogState,
    leader: Option<(LogLeader, Instant)>,
}

/// One member's access to a [`MemoryLog`]. Clones are the same member.
#[derive(Debug, Clone)]
pub struct MemoryLogMember {
    shared: Arc<Shared>,
    cut: watch::Sender<Connection>,
}

/// The connection between a member and the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connection {
    Up,
    Cut,
}

impl MemoryLog {
    /// Creates an empty log.
    pub fn new(id: StoreId) -> Self {
        let shared = Shared { id, state: Mutex::default(), changed: watch::Sender::new(0) };
        Self { shared: Arc::new(shared) }
    }

    /// Creates a log without entries that begins after a position, with a restored store.
    pub fn restored(id: StoreId, position: Revision) -> Self {
        let log = Self::new(id);
        log.shared.state.lock().log = LogState::restored(position);
        log
    }

    /// Returns a member's access.
    pub fn member(&self) -> MemoryLogMember {
        MemoryLogMember { shared: Arc::clone(&self.shared), cut: watch::Sender::new(Connection::Up) }
    }

    /// Returns the last position, zero if there is none.
    pub fn end(&self) -> Revision {
        self.shared.state.lock().log.end()
    }

    /// Returns all entries that the log holds.
    pub fn entries(&self) -> Vec<StoredEntry> {
        self.shared.state.lock().log.after(Revision(0), usize::MAX)
    }
}

impl MemoryLogMember {
    /// Cuts the member off: its calls fail, and its leadership runs out.
    pub fn cut_off(&self) {
        self.cut.send_replace(Connection::Cut);
    }

    /// Ends the cut.
    pub fn reconnect(&self) {
        self.cut.send_replace(Connection::Up);
    }

    fn is_up(&self) -> bool {
        *self.cut.borrow() == Connection::Up
    }

    /// Does something with the state, unless the member is cut off.
    fn with<T>(&self, act: impl FnOnce(&mut State) -> Result<T, LogError>) -> Result<T, LogError> {
        if !self.is_up() {
            return Err(LogError::Unavailable("this member is cut off".into()));
        }
        let mut state = self.shared.state.lock();
        let before = (state.log.end(), state.log.term(), state.leader.is_some());
        let result = act(&mut state);
        if before != (state.log.end(), state.log.term(), state.leader.is_some()) {
            self.shared.changed.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
        result
    }

    /// Takes the leadership, if none holds. Otherwise it returns the time at which the present one ends.
    fn take(&self, announcement: &Announcement) -> Result<Result<Term, Instant>, LogError> {
        self.with(|state| {
            let now = Instant::now();
            if let Some((_, until)) = &state.leader
                && *until > now
            {
                return Ok(Err(*until));
            }
            let term = state.log.begin_term();
            let leader = LogLeader { term, announcement: announcement.clone() };
            state.leader = Some((leader, now + LEADERSHIP_TTL));
            Ok(Ok(term))
        })
    }

    /// Renews a leadership until it is lost.
    async fn renew(self, term: Term, lost: CancellationToken) {
        let mut until = Instant::now() + LEADERSHIP_TTL;
        loop {
            tokio::select! {
                () = sleep(RENEW_EVERY) => {}
                () = lost.cancelled() => break,
            }
            let renewed = self.with(|state| match &mut state.leader {
                Some((leader, until)) if leader.term == term => {
                    *until = Instant::now() + LEADERSHIP_TTL;
                    Ok(())
                }
                _ => Err(LogError::Deposed(term)),
            });
            match renewed {
                Ok(()) => until = Instant::now() + LEADERSHIP_TTL,
                Err(LogError::Unavailable(_)) if Instant::now() < until => {}
                Err(_) => break,
            }
        }
        lost.cancel();
    }

    fn give_up(&self, term: Term) {
        // A member that is cut off cannot say so; its leadership then runs out.
        let _ = self.with(|state| {
            if state.leader.as_ref().is_some_and(|(leader, _)| leader.term == term) {
                state.leader = None;
            }
            Ok(())
        });
    }
}

impl State {
    fn leading(&self) -> Option<LogLeader> {
        let live = self.leader.as_ref().filter(|(_, until)| *until > Instant::now());
        live.map(|(leader, _)| leader.clone())
    }
}

/// Gives a leadership up when it is dropped.
struct Renewal {
    member: MemoryLogMember,
    term: Term,
    _lost: DropGuard,
}

impl Drop for Renewal {
    fn drop(&mut self) {
        self.member.give_up(self.term);
    }
}

impl Log for MemoryLogMember {
    fn id(&self) -> StoreId {
        self.shared.id
    }

    fn append(&self, term: Term, position: Revision, entry: Bytes) -> BoxFuture<'_, Result<(), LogError>> {
        ready(self.with(|state| state.log.append(term, position, entry))).boxed()
    }

    fn confirm(&self, term: Term) -> BoxFuture<'_, Result<(), LogError>> {
        ready(self.with(|state| state.log.confirm(term))).boxed()
    }

    fn end(&self) -> BoxFuture<'_, Result<Revision, LogError>> {
        ready(self.with(|state| Ok(state.log.end()))).boxed()
    }

    fn read(&self, after: Revision, max_bytes: usize) -> BoxFuture<'_, Result<Vec<StoredEntry>, LogError>> {
        ready(self.with(|state| state.log.read(after, max_bytes))).boxed()
    }

    fn follow(&self, after: Revision) -> BoxStream<'static, Result<StoredEntry, LogError>> {
        /// The most bytes of one read.
        const AT_ONCE: usize = 1 << 20;
        let member = self.clone();
        let (changes, cut) = (self.shared.changed.subscribe(), self.cut.subscribe());
        stream::unfold(Some((member, changes, cut, after)), |state| async move {
            let (member, mut changes, mut cut, after) = state?;
            loop {
                changes.mark_unchanged();
                cut.mark_unchanged();
                match member.with(|state| state.log.read(after, AT_ONCE)) {
                    Err(error) => return Some((vec![Err(error)], None)),
                    Ok(found) if found.is_empty() => {
                        tokio::select! {
                            changed = changes.changed() => changed.ok()?,
                            changed = cut.changed() => changed.ok()?,
                        }
                    }
                    Ok(found) => {
                        let last = found.last().map_or(after, |last| last.position);
                        let next = Some((member, changes, cut, last));
                        return Some((found.into_iter().map(Ok).collect(), next));
                    }
                }
            }
        })
        .flat_map(stream::iter)
        .boxed()
    }

    fn trim(&self, term: Term, through: Revision) -> BoxFuture<'_, Result<(), LogError>> {
        ready(self.with(|state| state.log.trim(term, through))).boxed()
    }

    fn acquire(&self, announcement: Announcement) -> BoxFuture<'static, Result<Leadership, LogError>> {
        let member = self.clone();
        let mut changes = self.shared.changed.subscribe();
        async move {
            loop {
                changes.mark_unchanged();
                let until = match member.take(&announcement)? {
                    Ok(term) => {
                        let lost = CancellationToken::new();
                        tokio::spawn(member.clone().renew(term, lost.clone()));
                        let renewal = Renewal { member, term, _lost: lost.clone().drop_guard() };
                        return Ok(Leadership::new(term, lost, renewal));
                    }
                    Err(until) => until,
                };
                tokio::select! {
                    () = sleep_until(until) => {}
                    changed = changes.changed() => {
                        changed.map_err(|_| LogError::Unavailable("the log is gone".into()))?;
                    }
                }
            }
        }
        .boxed()
    }

    fn leaders(&self) -> BoxStream<'static, Result<Option<LogLeader>, LogError>> {
        let member = self.clone();
        let (changes, cut) = (self.shared.changed.subscribe(), self.cut.subscribe());
        stream::unfold(Some((member, changes, cut, None)), |state| async move {
            let (member, mut changes, mut cut, told): (_, _, _, Option<Option<LogLeader>>) = state?;
            loop {
                changes.mark_unchanged();
                cut.mark_unchanged();
                let (leader, until) = match member
                    .with(|state| Ok((state.leading(), state.leader.as_ref().map(|(_, until)| *until))))
                {
                    Err(error) => return Some((Err(error), None)),
                    Ok(now) => now,
                };
                if told.as_ref() != Some(&leader) {
                    let next = Some((member, changes, cut, Some(leader.clone())));
                    return Some((Ok(leader), next));
                }
                let ends = async {
                    match (&leader, until) {
                        (Some(_), Some(until)) => sleep_until(until).await,
                        _ => std::future::pending().await,
                    }
                };
                tokio::select! {
                    changed = changes.changed() => changed.ok()?,
                    changed = cut.changed() => changed.ok()?,
                    () = ends => {}
                }
            }
        })
        .boxed()
    }
}
